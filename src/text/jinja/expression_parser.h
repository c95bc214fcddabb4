// Reads expressions, with Jinja's grammar and precedence: or, and, not, comparisons, + -, ~, * / //
// %,
// **, signs, then filters and tests.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/token_stream.h"
#include "text/jinja/tree.h"

namespace troupe::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  Result<ExprPtr> ParseExpression(bool with_conditional = true);
  // Without brackets: "a, b" is a tuple, "a" is not. Ends before the name `until`.
  Result<ExprPtr> ParseTuple(bool with_conditional, std::string_view until = "");
  // `| name(...)`, one after the other. `value` may be null; begins_with_name: there is no first
  // '|'.
  Result<ExprPtr> ParseFilters(ExprPtr value, bool begins_with_name);
  Result<ExprPtr> ParsePrimary();

  // Names that a macro's body says; the statement parser looks at them behind a body.
  struct Said {
    bool caller = false, varargs = false, kwargs = false;
  };
  Said& said() { return said_; }
  // Above 0: what is read may never be run, and a filter that is not known is an error only then.
  int& conditions() { return conditions_; }
  // The first filter or test that is not known and stands under no condition.
  const Status& unknown() const { return unknown_; }

 private:
  using Node = std::unique_ptr<Expr>;

  static Node MakeNode(Expr::Kind kind, int line);
  Result<ExprPtr> Finish(Node node);
  void NoteUnknown(std::string_view kind, const Expr& node);
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  Result<ExprPtr> ParseUnary(bool with_filters);
  Result<ExprPtr> ParsePostfix(ExprPtr node);
  Result<ExprPtr> ParseFiltersAndTests(ExprPtr node);
  Result<ExprPtr> ParseTest(ExprPtr node);
  Result<ExprPtr> ParseCall(ExprPtr callee);
  Result<ExprPtr> ParseSubscript(ExprPtr node);
  Result<ExprPtr> ParseBetween(std::string_view close);
  Result<ExprPtr> ParseDict();
  Result<ExprPtr> ParseNameOrConstant();
  Result<ExprPtr> ParseNumber();
  Result<CallArguments> ParseArguments();
  Result<std::string> ParseDottedName(std::string_view what);

  using ParseOperand = Result<ExprPtr> (ExpressionParser::*)();
  Result<ExprPtr> ParseBinary(ParseOperand operand, std::initializer_list<std::string_view> signs);

  TokenStream& tokens_;
  Said said_;
  int conditions_ = 0;
  Status unknown_;
};

}  // namespace troupe::jinja
