// The part of interpreter.h that calls functions, methods and macros.
#include <algorithm>
#include <utility>

#include "text/jinja/compare.h"
#include "text/jinja/functions.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/methods.h"

namespace troupe::jinja {
namespace {

// Takes the argument out; nothing if there is none by that name.
std::optional<Value> TakeNamed(Arguments& arguments, std::string_view name) {
  const auto found = std::find_if(arguments.named.begin(), arguments.named.end(),
                                  [&](const auto& given) { return given.first == name; });
  if (found == arguments.named.end()) return std::nullopt;
  Value value = std::move(found->second);
  arguments.named.erase(found);
  return value;
}

}  // namespace

Result<Value> Interpreter::Call(const Value& callee, Arguments arguments) {
  if (!callee.Is(Value::Kind::kCallable)) return Misused(callee, "what can be called");
  const Callable& callable = callee.AsCallable();
  switch (callable.type) {
    case Callable::Type::kMacro:
      return CallMacro(callable, std::move(arguments));
    case Callable::Type::kMethod:
      if (callable.self.Is(Value::Kind::kLoop)) {
        return CallLoop(callable.self.AsLoop(), callable.name, arguments);
      }
      return CallMethod(callable.self, callable.name, arguments, meter_);
    case Callable::Type::kFunction:
      break;
  }
  if (callable.name == "namespace") return MakeNamespace(arguments);
  return CallFunction(callable.name, arguments, now_, meter_);
}

Result<Value> Interpreter::CallMacro(const Callable& callable, Arguments arguments) {
  const Macro& macro = *callable.macro;
  const InScope in_scope(*this, std::make_shared<Scope>(callable.scope->shared_from_this()));
  std::size_t taken = 0;
  bool takes_caller = false;
  for (const Macro::Parameter& parameter : macro.parameters) {
    std::optional<Value> given;
    if (taken < arguments.positional.size()) {
      given = arguments.positional[taken++];
    } else {
      given = TakeNamed(arguments, parameter.name);
      if (!given && parameter.otherwise) {
        TROUPE_ASSIGN_OR_RETURN(given, Evaluate(*parameter.otherwise));
      }
    }
    takes_caller = takes_caller || parameter.name == "caller";
    scope_->Set(parameter.name,
                given ? *std::move(given)
                      : Value::UndefinedNamed(fmt::format("parameter '{}'", parameter.name)));
  }
  if (macro.uses_caller && !takes_caller) {
    std::optional<Value> caller = TakeNamed(arguments, "caller");
    scope_->Set("caller", caller ? *std::move(caller) : Value::UndefinedNamed("'caller'"));
  }
  if (macro.uses_kwargs) {
    DictBuilder named;
    for (auto& [name, value] : arguments.named) {
      TROUPE_RETURN_IF_ERROR(named.Set(name, std::move(value), meter_));
    }
    scope_->Set("kwargs", named.Take());
  } else if (!arguments.named.empty()) {
    return InvalidArgument("macro '{}' has no parameter '{}'", macro.name,
                           arguments.named[0].first);
  }
  Values rest(arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken),
              arguments.positional.end());
  if (!macro.uses_varargs && !rest.empty()) {
    return InvalidArgument("macro '{}' has {} parameters, found {} arguments", macro.name,
                           macro.parameters.size(), arguments.positional.size());
  }
  if (macro.uses_varargs) {
    TROUPE_ASSIGN_OR_RETURN(Value more, MakeList(std::move(rest), meter_, List::Flavour::kTuple));
    scope_->Set("varargs", std::move(more));
  }
  TROUPE_ASSIGN_OR_RETURN(MarkedText text, Capture(macro.body));
  TROUPE_RETURN_IF_ERROR(meter_.MakesString(text.size()));
  return Value::String(std::move(text));
}

Result<Value> Interpreter::CallLoop(Loop& loop, std::string_view name, const Arguments& arguments) {
  if (!arguments.named.empty()) return InvalidArgument("loop.{}(): no names expected", name);
  if (name == "cycle") {
    if (arguments.positional.empty()) return InvalidArgument("loop.cycle(): values expected");
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  bool same = loop.has_changed_before && loop.changed.size() == arguments.positional.size();
  for (std::size_t i = 0; same && i < loop.changed.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(same, Equal(loop.changed[i], arguments.positional[i], meter_));
  }
  if (same) return Value::Bool(false);
  if (loop.has_ended) return InvalidArgument("loop.changed() behind its loop");
  loop.has_changed_before = true;
  loop.changed = arguments.positional;
  return Value::Bool(true);
}

Result<Value> Interpreter::MakeNamespace(const Arguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const Value members, CallFunction("dict", arguments, now_, meter_));
  auto names = std::make_shared<Namespace>();
  TROUPE_RETURN_IF_ERROR(meter_.MakesList(members.AsDict().entries.size() + 8));
  for (const auto& [key, value] : members.AsDict().entries) {
    if (!key.Is(Value::Kind::kString)) return Misused(key, "a string as the name of an attribute");
    names->Set(key.AsString(), value);
  }
  namespaces_.push_back(names);
  return Value::Of(std::move(names));
}

}  // namespace troupe::jinja
