// The part of interpreter.h that computes expressions.
#include <utility>

#include "text/jinja/arithmetic.h"
#include "text/jinja/compare.h"
#include "text/jinja/filters.h"
#include "text/jinja/functions.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/slices.h"
#include "text/jinja/value_tests.h"

namespace troupe::jinja {

Result<Value> Interpreter::Evaluate(const Expr& expr) {
  const Deeper deeper(*this);
  if (Status deep = deeper.Check(); !deep.ok()) return At(expr.line, Result<Value>(deep));
  return At(expr.line, EvaluateKind(expr));
}

Result<Value> Interpreter::EvaluateKind(const Expr& expr) {
  const auto& operands = expr.operands;
  switch (expr.kind) {
    case Expr::Kind::kConstant:
      return expr.constant;
    case Expr::Kind::kName:
      return EvaluateName(expr);
    case Expr::Kind::kList:
    case Expr::Kind::kTuple: {
      TROUPE_ASSIGN_OR_RETURN(Values items, EvaluateAll(operands));
      return MakeList(
          std::move(items), meter_,
          expr.kind == Expr::Kind::kList ? List::Flavour::kList : List::Flavour::kTuple);
    }
    case Expr::Kind::kDict:
      return EvaluateDict(expr);
    case Expr::Kind::kConditional: {
      TROUPE_ASSIGN_OR_RETURN(const Value condition, Evaluate(*operands[0]));
      if (Truth(condition)) return Evaluate(*operands[1]);
      return EvaluateOr(operands[2], Value::UndefinedNamed("a condition without else"));
    }
    case Expr::Kind::kOr:
    case Expr::Kind::kAnd: {
      TROUPE_ASSIGN_OR_RETURN(Value left, Evaluate(*operands[0]));
      if (Truth(left) == (expr.kind == Expr::Kind::kOr)) return left;
      return Evaluate(*operands[1]);
    }
    case Expr::Kind::kCompare:
      return EvaluateCompare(expr);
    case Expr::Kind::kSlice:
      return EvaluateSlice(expr);
    case Expr::Kind::kFilter:
      return EvaluateFilter(expr, nullptr);
    case Expr::Kind::kConcat: {
      TROUPE_ASSIGN_OR_RETURN(const Values parts, EvaluateAll(operands));
      return Join(parts, meter_);
    }
    case Expr::Kind::kBinary: {
      TROUPE_ASSIGN_OR_RETURN(const Value left, Evaluate(*operands[0]));
      TROUPE_ASSIGN_OR_RETURN(const Value right, Evaluate(*operands[1]));
      return Compute(expr.name, left, right, meter_);
    }
    default:
      break;
  }
  TROUPE_ASSIGN_OR_RETURN(const Value operand, Evaluate(*operands[0]));
  switch (expr.kind) {
    case Expr::Kind::kNot:
      return Value::Bool(!Truth(operand));
    case Expr::Kind::kNegate:
      return Negate(operand);
    case Expr::Kind::kPlus:
      if (!operand.IsNumber()) return Misused(operand, "a number behind '+'");
      return operand.Is(Kind::kFloat) ? operand : Value::Int(operand.AsInt());
    case Expr::Kind::kAttribute:
      return GetAttribute(operand, expr.name, meter_);
    case Expr::Kind::kItem: {
      TROUPE_ASSIGN_OR_RETURN(const Value key, Evaluate(*operands[1]));
      return GetItem(operand, key, meter_);
    }
    case Expr::Kind::kTest: {
      TROUPE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(expr.call));
      TROUPE_ASSIGN_OR_RETURN(const bool passes, ApplyTest(expr.name, operand, arguments, meter_));
      return Value::Bool(passes);
    }
    default: {
      TROUPE_CHECK(expr.kind == Expr::Kind::kCall);
      TROUPE_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(expr.call));
      return Call(operand, std::move(arguments));
    }
  }
}

Result<Value> Interpreter::EvaluateOr(const ExprPtr& expr, Value otherwise) {
  if (!expr) return otherwise;
  return Evaluate(*expr);
}

Result<Values> Interpreter::EvaluateAll(const std::vector<ExprPtr>& exprs) {
  Values values;
  for (const ExprPtr& expr : exprs) {
    TROUPE_ASSIGN_OR_RETURN(Value value, Evaluate(*expr));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Value> Interpreter::EvaluateName(const Expr& expr) {
  if (const Value* found = scope_->Find(expr.name)) return *found;
  if (HasFunction(expr.name, now_.has_value())) {
    return Value::Of(std::make_shared<const Callable>(Callable{.name = expr.name}));
  }
  return Value::UndefinedNamed(fmt::format("'{}'", expr.name));
}

Result<Value> Interpreter::EvaluateDict(const Expr& expr) {
  DictBuilder dict;
  for (std::size_t i = 0; i < expr.operands.size(); i += 2) {
    TROUPE_ASSIGN_OR_RETURN(Value key, Evaluate(*expr.operands[i]));
    TROUPE_ASSIGN_OR_RETURN(Value value, Evaluate(*expr.operands[i + 1]));
    TROUPE_RETURN_IF_ERROR(dict.Set(std::move(key), std::move(value), meter_));
  }
  return dict.Take();
}

// a < b < c is true if both are; b is computed once.
Result<Value> Interpreter::EvaluateCompare(const Expr& expr) {
  TROUPE_ASSIGN_OR_RETURN(Value left, Evaluate(*expr.operands[0]));
  for (std::size_t i = 0; i < expr.signs.size(); ++i) {
    const std::string& sign = expr.signs[i];
    TROUPE_ASSIGN_OR_RETURN(Value right, Evaluate(*expr.operands[i + 1]));
    Result<bool> holds = sign == "in" || sign == "not in" ? Contains(right, left, meter_)
                         : sign == "==" || sign == "!="   ? Equal(left, right, meter_)
                                                          : CompareOrder(sign, left, right, meter_);
    TROUPE_RETURN_IF_ERROR(holds.status());
    if (*holds == (sign == "!=" || sign == "not in")) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Interpreter::EvaluateSlice(const Expr& expr) {
  TROUPE_ASSIGN_OR_RETURN(const Value value, Evaluate(*expr.operands[0]));
  Value bounds[3];
  for (std::size_t i = 0; i < 3; ++i) {
    TROUPE_ASSIGN_OR_RETURN(bounds[i], EvaluateOr(expr.operands[i + 1], Value::MakeNone()));
  }
  return GetSlice(value, bounds[0], bounds[1], bounds[2], meter_);
}

Result<Value> Interpreter::EvaluateFilter(const Expr& expr, const Value* subject) {
  const Deeper deeper(*this);
  TROUPE_RETURN_IF_ERROR(deeper.Check());
  Value value;
  const ExprPtr& operand = expr.operands[0];
  if (operand == nullptr) {
    TROUPE_CHECK(subject != nullptr);
    value = *subject;
  } else if (operand->kind == Expr::Kind::kFilter) {
    TROUPE_ASSIGN_OR_RETURN(value, EvaluateFilter(*operand, subject));
  } else {
    TROUPE_ASSIGN_OR_RETURN(value, Evaluate(*operand));
  }
  TROUPE_ASSIGN_OR_RETURN(const Arguments arguments, EvaluateArguments(expr.call));
  return At(expr.line, ApplyFilter(expr.name, value, arguments, meter_));
}

Result<Arguments> Interpreter::EvaluateArguments(const CallArguments& call) {
  Arguments arguments;
  TROUPE_ASSIGN_OR_RETURN(arguments.positional, EvaluateAll(call.positional));
  for (const auto& [name, expr] : call.named) {
    TROUPE_ASSIGN_OR_RETURN(Value value, Evaluate(*expr));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (call.more_positional) {
    TROUPE_ASSIGN_OR_RETURN(const Value more, Evaluate(*call.more_positional));
    TROUPE_ASSIGN_OR_RETURN(const Values items, Iterate(more, meter_));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (call.more_named) {
    TROUPE_ASSIGN_OR_RETURN(const Value more, Evaluate(*call.more_named));
    if (!more.Is(Kind::kDict)) return Misused(more, "a dict behind '**'");
    for (const auto& [key, value] : more.AsDict().entries) {
      if (!key.Is(Kind::kString)) return Misused(key, "a string as the name of an argument");
      for (const auto& [name, given] : arguments.named) {
        if (name == key.AsString())
          return InvalidArgument("the argument '{}' is given twice", name);
      }
      arguments.named.emplace_back(key.AsString(), value);
    }
  }
  return arguments;
}

}  // namespace troupe::jinja
