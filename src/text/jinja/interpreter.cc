#include "text/jinja/interpreter.h"

#include <algorithm>
#include <utility>

#include "text/jinja/printing.h"

namespace troupe::jinja {

Interpreter::~Interpreter() {
  for (const auto& names : namespaces_) names->members.clear();
  for (const auto& scope : kept_scopes_) scope->names.clear();
}

Result<MarkedText> Interpreter::Run(const Block& block) {
  MarkedText text;
  out_ = &text;
  const Result<Flow> flow = Execute(block);
  out_ = nullptr;
  if (flow.ok()) return text;
  return Status(flow.status()).WithContext(fmt::format("line {}", line_));
}

Result<Interpreter::Flow> Interpreter::Execute(const Block& block) {
  for (const Statement& statement : block) {
    TROUPE_ASSIGN_OR_RETURN(const Flow flow, Execute(statement));
    if (flow != Flow::kOn) return flow;
  }
  return Flow::kOn;
}

Result<Interpreter::Flow> Interpreter::Execute(const Statement& statement) {
  const Deeper deeper(*this);
  if (Status deep = deeper.Check(); !deep.ok()) return At(statement.line, Result<Flow>(deep));
  return At(statement.line, ExecuteKind(statement));
}

Result<Interpreter::Flow> Interpreter::ExecuteKind(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::kText:
      TROUPE_RETURN_IF_ERROR(Write(MarkedText(statement.text)));
      break;
    case Statement::Kind::kOutput: {
      TROUPE_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expr));
      TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter_));
      TROUPE_RETURN_IF_ERROR(Write(text));
      break;
    }
    case Statement::Kind::kFor:
      return ExecuteFor(statement);
    case Statement::Kind::kIf:
      return ExecuteIf(statement);
    case Statement::Kind::kSet: {
      TROUPE_ASSIGN_OR_RETURN(Value value, Evaluate(*statement.expr));
      TROUPE_RETURN_IF_ERROR(Assign(statement.target, std::move(value)));
      break;
    }
    case Statement::Kind::kSetBlock:
    case Statement::Kind::kFilterBlock: {
      TROUPE_ASSIGN_OR_RETURN(MarkedText text, Capture(statement.body));
      Value value = Value::String(std::move(text));
      if (statement.expr) {
        TROUPE_ASSIGN_OR_RETURN(value, EvaluateFilter(*statement.expr, &value));
      }
      if (statement.kind == Statement::Kind::kSetBlock) {
        TROUPE_RETURN_IF_ERROR(Assign(statement.target, std::move(value)));
      } else {
        TROUPE_ASSIGN_OR_RETURN(const MarkedText filtered, Print(value, meter_));
        TROUPE_RETURN_IF_ERROR(Write(filtered));
      }
      break;
    }
    case Statement::Kind::kWith:
      TROUPE_RETURN_IF_ERROR(ExecuteWith(statement));
      break;
    case Statement::Kind::kMacro:
      TROUPE_RETURN_IF_ERROR(meter_.MakesList(32));  // about what it keeps alive
      scope_->Set(statement.target.name, MakeMacro(*statement.macro));
      break;
    case Statement::Kind::kCall:
      TROUPE_RETURN_IF_ERROR(ExecuteCall(statement));
      break;
    case Statement::Kind::kGeneration: {
      const InScope in_scope(*this);
      return Execute(statement.body);
    }
    case Statement::Kind::kBreak:
      return Flow::kBreak;
    case Statement::Kind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kOn;
}

Result<Interpreter::Flow> Interpreter::ExecuteFor(const Statement& loop) {
  TROUPE_ASSIGN_OR_RETURN(const Value over, Evaluate(*loop.expr));
  TROUPE_ASSIGN_OR_RETURN(Values items, Iterate(over, meter_));
  if (loop.condition) {
    Values kept;
    for (Value& item : items) {
      const InScope in_scope(*this);
      TROUPE_RETURN_IF_ERROR(Assign(loop.target, item));
      TROUPE_ASSIGN_OR_RETURN(const Value passes, Evaluate(*loop.condition));
      if (Truth(passes)) kept.push_back(std::move(item));
    }
    items = std::move(kept);
  }
  const auto state = std::make_shared<Loop>(Loop{.items = std::move(items)});
  Result<Flow> flow = Flow::kOn;
  bool has_ended_a_pass = false;
  for (std::size_t i = 0; i < state->items.size(); ++i) {
    state->index = i;
    flow = ExecutePass(loop, state);
    if (!flow.ok() || *flow == Flow::kBreak) break;
    has_ended_a_pass = has_ended_a_pass || *flow == Flow::kOn;
  }
  state->has_ended = true;
  state->changed.clear();
  TROUPE_RETURN_IF_ERROR(flow.status());
  if (has_ended_a_pass) return Flow::kOn;
  const InScope in_scope(*this);  // Jinja runs `else` also if each pass was broken off
  return Execute(loop.otherwise);
}

Result<Interpreter::Flow> Interpreter::ExecutePass(const Statement& loop,
                                                   const std::shared_ptr<Loop>& state) {
  const InScope in_scope(*this);
  scope_->Set("loop", Value::Of(state));
  TROUPE_RETURN_IF_ERROR(Assign(loop.target, state->items[state->index]));
  return Execute(loop.body);
}

Result<Interpreter::Flow> Interpreter::ExecuteIf(const Statement& choice) {
  for (const Statement::Branch& branch : choice.branches) {
    bool taken = true;
    if (branch.condition) {
      TROUPE_ASSIGN_OR_RETURN(const Value condition, Evaluate(*branch.condition));
      taken = Truth(condition);
    }
    if (taken) return Execute(branch.body);
  }
  return Flow::kOn;
}

// All values are computed before the first name gets its own.
Status Interpreter::ExecuteWith(const Statement& with) {
  Values values;
  for (const auto& [target, expr] : with.assignments) {
    TROUPE_ASSIGN_OR_RETURN(Value value, Evaluate(*expr));
    values.push_back(std::move(value));
  }
  const InScope in_scope(*this);
  for (std::size_t i = 0; i < values.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(Assign(with.assignments[i].first, std::move(values[i])));
  }
  return Execute(with.body).status();
}

Status Interpreter::ExecuteCall(const Statement& call) {
  TROUPE_ASSIGN_OR_RETURN(const Value callee, Evaluate(*call.expr->operands[0]));
  TROUPE_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(call.expr->call));
  TROUPE_RETURN_IF_ERROR(meter_.MakesList(32));
  const InScope in_scope(*this);
  arguments.named.emplace_back("caller", MakeMacro(*call.macro));
  TROUPE_ASSIGN_OR_RETURN(const Value value, Call(callee, std::move(arguments)));
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, Print(value, meter_));
  return Write(text);
}

Result<MarkedText> Interpreter::Capture(const Block& block) {
  MarkedText text;
  MarkedText* before = std::exchange(out_, &text);
  const InScope in_scope(*this);
  const Result<Flow> flow = Execute(block);
  out_ = before;
  TROUPE_RETURN_IF_ERROR(flow.status());
  return text;
}

Status Interpreter::Write(const MarkedText& text) {
  TROUPE_RETURN_IF_ERROR(meter_.Reads(text.size()));
  const std::size_t most = meter_.limits().output_bytes;
  if (text.size() > most - std::min(most, out_->size())) {
    return Error(Code::kResourceExhausted, "an output of more than {} bytes", most);
  }
  out_->Append(text);
  return OkStatus();
}

Status Interpreter::Assign(const Target& target, Value value) {
  if (!target.attribute.empty()) {
    const Value* names = scope_->Find(target.name);
    if (names == nullptr || !names->Is(Kind::kNamespace)) {
      return InvalidArgument("'{}' is no namespace, which alone can be given attributes",
                             target.name);
    }
    TROUPE_RETURN_IF_ERROR(meter_.Steps(1 + names->AsNamespace().members.size()));
    names->AsNamespace().Set(target.attribute, std::move(value));
    return OkStatus();
  }
  if (!target.is_tuple) {
    scope_->Set(target.name, std::move(value));
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(Values parts, Iterate(value, meter_));
  if (value.Is(Kind::kUndefined)) return Misused(value, "values to take apart");
  if (parts.size() != target.parts.size()) {
    return InvalidArgument("{} values, expected {} to take apart", parts.size(),
                           target.parts.size());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(Assign(target.parts[i], std::move(parts[i])));
  }
  return OkStatus();
}

Value Interpreter::MakeMacro(const Macro& macro) {
  kept_scopes_.push_back(scope_);
  return Value::Of(std::make_shared<const Callable>(Callable{
      .type = Callable::Type::kMacro, .name = macro.name, .macro = &macro, .scope = scope_.get()}));
}

}  // namespace troupe::jinja
