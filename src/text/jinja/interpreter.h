// Walks a template's tree and writes its text. Every recursion and every loop is counted by the
// meter, so that any template ends. Threads: one each.
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "text/jinja/arguments.h"
#include "text/jinja/callable.h"
#include "text/jinja/limits.h"
#include "text/jinja/scope.h"
#include "text/jinja/tree.h"

namespace troupe::jinja {

class Interpreter {
 public:
  // The scope holds the values from outside.
  Interpreter(std::shared_ptr<Scope> outside, std::optional<std::tm> now,
              const RenderLimits& limits)
      : meter_(limits), now_(now), scope_(std::make_shared<Scope>(std::move(outside))) {}
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // The text, or an error with its line.
  Result<MarkedText> Run(const Block& block);

 private:
  enum class Flow { kOn, kBreak, kContinue };

  // Statements: interpreter.cc.
  Result<Flow> Execute(const Block& block);
  Result<Flow> Execute(const Statement& statement);
  Result<Flow> ExecuteKind(const Statement& statement);
  Result<Flow> ExecuteFor(const Statement& loop);
  Result<Flow> ExecutePass(const Statement& loop, const std::shared_ptr<Loop>& state);
  Result<Flow> ExecuteIf(const Statement& choice);
  Status ExecuteWith(const Statement& with);
  Status ExecuteCall(const Statement& call);
  Result<MarkedText> Capture(const Block& block);
  Status Write(const MarkedText& text);
  Status Assign(const Target& target, Value value);
  Value MakeMacro(const Macro& macro);

  // Expressions: evaluate.cc.
  Result<Value> Evaluate(const Expr& expr);
  Result<Value> EvaluateKind(const Expr& expr);
  Result<Value> EvaluateOr(const ExprPtr& expr, Value otherwise);
  Result<Values> EvaluateAll(const std::vector<ExprPtr>& exprs);
  Result<Value> EvaluateDict(const Expr& expr);
  Result<Value> EvaluateCompare(const Expr& expr);
  Result<Value> EvaluateSlice(const Expr& expr);
  Result<Value> EvaluateName(const Expr& expr);
  Result<Arguments> EvaluateArguments(const CallArguments& call);
  // A filter over what its innermost operand is, or over `subject` where that is null.
  Result<Value> EvaluateFilter(const Expr& expr, const Value* subject);

  // Calls: call.cc.
  Result<Value> Call(const Value& callee, Arguments arguments);
  Result<Value> CallMacro(const Callable& callable, Arguments arguments);
  Result<Value> CallLoop(Loop& loop, std::string_view name, const Arguments& arguments);
  Result<Value> MakeNamespace(const Arguments& arguments);

  // While one lives, a scope lies around what is run.
  class InScope;
  // While one lives, what is run lies a level deeper.
  class Deeper;

  // Keeps the line of the first error on its way out.
  template <typename T>
  Result<T> At(int line, Result<T> result) {
    if (!result.ok() && line_ == 0) line_ = line;
    return result;
  }

  Meter meter_;
  std::optional<std::tm> now_;
  std::shared_ptr<Scope> scope_;
  MarkedText* out_ = nullptr;
  int depth_ = 0;
  int line_ = 0;  // of the error; 0: none yet
  // Macros point to their scopes and namespaces may hold themselves: both live as long as this.
  std::vector<std::shared_ptr<Scope>> kept_scopes_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
};

class Interpreter::InScope {
 public:
  explicit InScope(Interpreter& interpreter)
      : InScope(interpreter, std::make_shared<Scope>(interpreter.scope_)) {}
  InScope(Interpreter& interpreter, std::shared_ptr<Scope> scope)
      : interpreter_(interpreter), before_(std::exchange(interpreter.scope_, std::move(scope))) {}
  ~InScope() { interpreter_.scope_ = std::move(before_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Interpreter& interpreter_;
  std::shared_ptr<Scope> before_;
};

class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : interpreter_(interpreter) { ++interpreter_.depth_; }
  ~Deeper() { --interpreter_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  Status Check() const {
    TROUPE_RETURN_IF_ERROR(interpreter_.meter_.Steps());
    const std::size_t most = interpreter_.meter_.limits().depth;
    if (static_cast<std::size_t>(interpreter_.depth_) <= most) return OkStatus();
    return Error(Code::kResourceExhausted, "nested deeper than {}", most);
  }

 private:
  Interpreter& interpreter_;
};

}  // namespace troupe::jinja
