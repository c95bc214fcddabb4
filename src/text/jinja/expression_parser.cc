#include "text/jinja/expression_parser.h"

#include <algorithm>

#include "text/jinja/filters.h"
#include "text/jinja/value_tests.h"

namespace troupe::jinja {

ExpressionParser::Node ExpressionParser::MakeNode(Expr::Kind kind, int line) {
  return std::make_unique<Expr>(Expr{.kind = kind, .line = line});
}

// Chains like a + b + c grow to the left without recursion: their height is checked here.
Result<ExprPtr> ExpressionParser::Finish(Node node) {
  int highest = 0;
  const auto look = [&](const ExprPtr& part) {
    if (part) highest = std::max(highest, part->height);
  };
  for (const ExprPtr& part : node->operands) look(part);
  for (const ExprPtr& part : node->call.positional) look(part);
  for (const auto& [name, part] : node->call.named) look(part);
  look(node->call.more_positional);
  look(node->call.more_named);
  node->height = highest + 1;
  TROUPE_RETURN_IF_ERROR(tokens_.CheckDepth(node->height));
  return ExprPtr(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseExpression(bool with_conditional) {
  const TokenStream::Deeper deeper(tokens_);
  TROUPE_RETURN_IF_ERROR(deeper.Check());
  if (!with_conditional) return ParseOr();
  const int line = tokens_.Peek().line;
  const Status unknown_before = unknown_;
  Result<ExprPtr> value = ParseOr();
  if (!value.ok()) return value;
  while (tokens_.SkipName("if")) {
    unknown_ = unknown_before;  // what was read may never be run
    ++conditions_;
    Node node = MakeNode(Expr::Kind::kConditional, line);
    Result<ExprPtr> condition = ParseOr();
    Result<ExprPtr> otherwise = ExprPtr();
    if (condition.ok() && tokens_.SkipName("else")) otherwise = ParseExpression();
    --conditions_;
    TROUPE_RETURN_IF_ERROR(condition.status());
    TROUPE_RETURN_IF_ERROR(otherwise.status());
    node->operands.push_back(*std::move(condition));
    node->operands.push_back(*std::move(value));
    node->operands.push_back(*std::move(otherwise));
    value = Finish(std::move(node));
    if (!value.ok()) return value;
  }
  return value;
}

Result<ExprPtr> ExpressionParser::ParseTuple(bool with_conditional, std::string_view until) {
  const int line = tokens_.Peek().line;
  const auto ends = [&] {
    return tokens_.Is(TokenKind::kOutputEnd) || tokens_.Is(TokenKind::kBlockEnd) ||
           tokens_.IsSign(")") || (!until.empty() && tokens_.IsName(until));
  };
  if (ends()) return tokens_.Expected("an expression");
  TROUPE_ASSIGN_OR_RETURN(ExprPtr first, ParseExpression(with_conditional));
  if (!tokens_.IsSign(",")) return first;
  Node node = MakeNode(Expr::Kind::kTuple, line);
  node->operands.push_back(std::move(first));
  while (tokens_.SkipSign(",")) {
    if (ends()) break;
    TROUPE_ASSIGN_OR_RETURN(ExprPtr next, ParseExpression(with_conditional));
    node->operands.push_back(std::move(next));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseOr() {
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (tokens_.IsName("or")) {
    Node node = MakeNode(Expr::Kind::kOr, tokens_.Next().line);
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    node->operands.push_back(std::move(left));
    node->operands.push_back(std::move(right));
    TROUPE_ASSIGN_OR_RETURN(left, Finish(std::move(node)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::ParseAnd() {
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (tokens_.IsName("and")) {
    Node node = MakeNode(Expr::Kind::kAnd, tokens_.Next().line);
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    node->operands.push_back(std::move(left));
    node->operands.push_back(std::move(right));
    TROUPE_ASSIGN_OR_RETURN(left, Finish(std::move(node)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::ParseNot() {
  if (!tokens_.IsName("not")) return ParseCompare();
  const TokenStream::Deeper deeper(tokens_);
  TROUPE_RETURN_IF_ERROR(deeper.Check());
  Node node = MakeNode(Expr::Kind::kNot, tokens_.Next().line);
  TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  node->operands.push_back(std::move(operand));
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseCompare() {
  const int line = tokens_.Peek().line;
  TROUPE_ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  Node node = MakeNode(Expr::Kind::kCompare, line);
  node->operands.push_back(std::move(first));
  while (true) {
    std::string sign;
    const bool not_in = tokens_.IsName("not") && tokens_.Following().kind == TokenKind::kName &&
                        tokens_.Following().text == "in";
    if (not_in) {
      tokens_.Next();
      sign = "not in";
    } else if (tokens_.IsName("in")) {
      sign = "in";
    } else {
      for (const std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
        if (tokens_.IsSign(known)) sign = known;
      }
    }
    if (sign.empty()) break;
    tokens_.Next();
    TROUPE_ASSIGN_OR_RETURN(ExprPtr next, ParseSum());
    node->signs.push_back(std::move(sign));
    node->operands.push_back(std::move(next));
  }
  if (node->signs.empty()) return std::move(node->operands[0]);
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseBinary(ParseOperand operand,
                                              std::initializer_list<std::string_view> signs) {
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, (this->*operand)());
  while (std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return tokens_.IsSign(sign); })) {
    const Token& sign = tokens_.Next();
    Node node = MakeNode(Expr::Kind::kBinary, sign.line);
    node->name = sign.text;
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, (this->*operand)());
    node->operands.push_back(std::move(left));
    node->operands.push_back(std::move(right));
    TROUPE_ASSIGN_OR_RETURN(left, Finish(std::move(node)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::ParseSum() {
  return ParseBinary(&ExpressionParser::ParseConcat, {"+", "-"});
}

Result<ExprPtr> ExpressionParser::ParseConcat() {
  const int line = tokens_.Peek().line;
  TROUPE_ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!tokens_.IsSign("~")) return first;
  Node node = MakeNode(Expr::Kind::kConcat, line);
  node->operands.push_back(std::move(first));
  while (tokens_.SkipSign("~")) {
    TROUPE_ASSIGN_OR_RETURN(ExprPtr next, ParseProduct());
    node->operands.push_back(std::move(next));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseProduct() {
  return ParseBinary(&ExpressionParser::ParsePower, {"*", "/", "//", "%"});
}

Result<ExprPtr> ExpressionParser::ParsePower() {
  TROUPE_ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(true));
  while (tokens_.IsSign("**")) {
    Node node = MakeNode(Expr::Kind::kBinary, tokens_.Next().line);
    node->name = "**";
    TROUPE_ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(true));
    node->operands.push_back(std::move(left));
    node->operands.push_back(std::move(right));
    TROUPE_ASSIGN_OR_RETURN(left, Finish(std::move(node)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::ParseUnary(bool with_filters) {
  const TokenStream::Deeper deeper(tokens_);
  TROUPE_RETURN_IF_ERROR(deeper.Check());
  ExprPtr value;
  if (tokens_.IsSign("-") || tokens_.IsSign("+")) {
    const bool negates = tokens_.IsSign("-");
    Node node = MakeNode(negates ? Expr::Kind::kNegate : Expr::Kind::kPlus, tokens_.Next().line);
    TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    node->operands.push_back(std::move(operand));
    TROUPE_ASSIGN_OR_RETURN(value, Finish(std::move(node)));
  } else {
    TROUPE_ASSIGN_OR_RETURN(value, ParsePrimary());
  }
  TROUPE_ASSIGN_OR_RETURN(value, ParsePostfix(std::move(value)));
  if (!with_filters) return value;
  return ParseFiltersAndTests(std::move(value));
}

Result<ExprPtr> ExpressionParser::ParsePostfix(ExprPtr node) {
  while (true) {
    if (tokens_.IsSign(".") || tokens_.IsSign("[")) {
      TROUPE_ASSIGN_OR_RETURN(node, ParseSubscript(std::move(node)));
    } else if (tokens_.IsSign("(")) {
      TROUPE_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> ExpressionParser::ParseFiltersAndTests(ExprPtr node) {
  while (true) {
    if (tokens_.IsSign("|")) {
      TROUPE_ASSIGN_OR_RETURN(node, ParseFilters(std::move(node), false));
    } else if (tokens_.IsName("is")) {
      TROUPE_ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (tokens_.IsSign("(")) {
      TROUPE_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

void ExpressionParser::NoteUnknown(std::string_view kind, const Expr& node) {
  if (conditions_ > 0 || !unknown_.ok()) return;
  unknown_ =
      Error(Code::kUnimplemented, "line {}: no {} '{}' is known", node.line, kind, node.name);
}

Result<std::string> ExpressionParser::ParseDottedName(std::string_view what) {
  TROUPE_ASSIGN_OR_RETURN(std::string name, tokens_.ExpectName(what));
  while (tokens_.SkipSign(".")) {
    TROUPE_ASSIGN_OR_RETURN(const std::string part, tokens_.ExpectName(what));
    name += "." + part;
  }
  return name;
}

Result<ExprPtr> ExpressionParser::ParseFilters(ExprPtr value, bool begins_with_name) {
  while (begins_with_name || tokens_.SkipSign("|")) {
    begins_with_name = false;
    Node node = MakeNode(Expr::Kind::kFilter, tokens_.Peek().line);
    TROUPE_ASSIGN_OR_RETURN(node->name, ParseDottedName("the name of a filter"));
    if (!HasFilter(node->name)) NoteUnknown("filter", *node);
    if (tokens_.IsSign("(")) {
      TROUPE_ASSIGN_OR_RETURN(node->call, ParseArguments());
    }
    node->operands.push_back(std::move(value));
    TROUPE_ASSIGN_OR_RETURN(value, Finish(std::move(node)));
  }
  return value;
}

Result<ExprPtr> ExpressionParser::ParseTest(ExprPtr value) {
  Node node = MakeNode(Expr::Kind::kTest, tokens_.Next().line);
  const bool negates = tokens_.SkipName("not");
  TROUPE_ASSIGN_OR_RETURN(node->name, ParseDottedName("the name of a test"));
  if (!HasTest(node->name)) NoteUnknown("test", *node);
  const bool has_operand =
      tokens_.Is(TokenKind::kString) || tokens_.Is(TokenKind::kInteger) ||
      tokens_.Is(TokenKind::kFloat) || tokens_.IsSign("[") || tokens_.IsSign("{") ||
      (tokens_.Is(TokenKind::kName) && !tokens_.IsAnyName({"else", "or", "and"}));
  if (tokens_.IsSign("(")) {
    TROUPE_ASSIGN_OR_RETURN(node->call, ParseArguments());
  } else if (has_operand) {
    if (tokens_.IsName("is")) return tokens_.Expected("no second test");
    TROUPE_ASSIGN_OR_RETURN(ExprPtr operand, ParsePrimary());
    TROUPE_ASSIGN_OR_RETURN(operand, ParsePostfix(std::move(operand)));
    node->call.positional.push_back(std::move(operand));
  }
  const int line = node->line;
  node->operands.push_back(std::move(value));
  TROUPE_ASSIGN_OR_RETURN(ExprPtr test, Finish(std::move(node)));
  if (!negates) return test;
  Node opposite = MakeNode(Expr::Kind::kNot, line);
  opposite->operands.push_back(std::move(test));
  return Finish(std::move(opposite));
}

Result<ExprPtr> ExpressionParser::ParseCall(ExprPtr callee) {
  Node node = MakeNode(Expr::Kind::kCall, tokens_.Peek().line);
  TROUPE_ASSIGN_OR_RETURN(node->call, ParseArguments());
  node->operands.push_back(std::move(callee));
  return Finish(std::move(node));
}

}  // namespace troupe::jinja
