// The rest of expression_parser.h: names, constants, what stands in brackets, arguments.
#include <charconv>
#include <cstdlib>

#include "text/jinja/expression_parser.h"

namespace troupe::jinja {

Result<ExprPtr> ExpressionParser::ParsePrimary() {
  const TokenStream::Deeper deeper(tokens_);
  TROUPE_RETURN_IF_ERROR(deeper.Check());
  switch (tokens_.Peek().kind) {
    case TokenKind::kName:
      return ParseNameOrConstant();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    case TokenKind::kString: {
      Node node = MakeNode(Expr::Kind::kConstant, tokens_.Peek().line);
      std::string text;  // strings side by side are one
      while (tokens_.Is(TokenKind::kString)) text += tokens_.Next().text;
      node->constant = Value::String(std::move(text));
      return Finish(std::move(node));
    }
    default:
      break;
  }
  if (tokens_.SkipSign("(")) return ParseBetween(")");
  if (tokens_.SkipSign("[")) return ParseBetween("]");
  if (tokens_.IsSign("{")) return ParseDict();
  return tokens_.Expected("an expression");
}

Result<ExprPtr> ExpressionParser::ParseNameOrConstant() {
  const Token& token = tokens_.Next();
  Node node = MakeNode(Expr::Kind::kConstant, token.line);
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = Value::Bool(name[0] == 't' || name[0] == 'T');
  } else if (name == "none" || name == "None") {
    node->constant = Value::MakeNone();
  } else {
    node->kind = Expr::Kind::kName;
    node->name = name;
    said_.caller = said_.caller || name == "caller";
    said_.varargs = said_.varargs || name == "varargs";
    said_.kwargs = said_.kwargs || name == "kwargs";
  }
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseNumber() {
  const Token& token = tokens_.Next();
  Node node = MakeNode(Expr::Kind::kConstant, token.line);
  if (token.kind == TokenKind::kFloat) {
    node->constant = Value::Float(std::strtod(token.text.c_str(), nullptr));
    return Finish(std::move(node));
  }
  std::int64_t number = 0;
  const char* end = token.text.data() + token.text.size();
  if (std::from_chars(token.text.data(), end, number).ec != std::errc()) {
    return InvalidArgument("line {}: {}, expected a whole number of 64 bits", token.line,
                           token.text);
  }
  node->constant = Value::Int(number);
  return Finish(std::move(node));
}

// A list, or what stands in round brackets: a tuple if there is a comma, or nothing.
Result<ExprPtr> ExpressionParser::ParseBetween(std::string_view close) {
  const bool is_list = close == "]";
  Node node = MakeNode(is_list ? Expr::Kind::kList : Expr::Kind::kTuple, tokens_.Peek().line);
  bool has_comma = false;
  while (!tokens_.IsSign(close)) {
    if (!node->operands.empty()) {
      TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(","));
      has_comma = true;
      if (tokens_.IsSign(close)) break;
    }
    TROUPE_ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    node->operands.push_back(std::move(item));
  }
  tokens_.Next();
  if (!is_list && !has_comma && node->operands.size() == 1) return std::move(node->operands[0]);
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseDict() {
  Node node = MakeNode(Expr::Kind::kDict, tokens_.Next().line);
  while (!tokens_.IsSign("}")) {
    if (!node->operands.empty()) {
      TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(","));
      if (tokens_.IsSign("}")) break;
    }
    TROUPE_ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(":"));
    TROUPE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    node->operands.push_back(std::move(key));
    node->operands.push_back(std::move(value));
  }
  tokens_.Next();
  return Finish(std::move(node));
}

Result<ExprPtr> ExpressionParser::ParseSubscript(ExprPtr value) {
  Node node = MakeNode(Expr::Kind::kItem, tokens_.Peek().line);
  node->operands.push_back(std::move(value));
  if (tokens_.SkipSign(".")) {
    if (tokens_.Is(TokenKind::kInteger)) {
      TROUPE_ASSIGN_OR_RETURN(ExprPtr number, ParseNumber());
      node->operands.push_back(std::move(number));
      return Finish(std::move(node));
    }
    node->kind = Expr::Kind::kAttribute;
    TROUPE_ASSIGN_OR_RETURN(node->name, tokens_.ExpectName("a name or a number"));
    return Finish(std::move(node));
  }
  tokens_.Next();
  ExprPtr bounds[3];
  int bound = 0;
  while (!tokens_.IsSign("]")) {
    if (tokens_.IsSign(":") && bound < 2) {
      tokens_.Next();
      node->kind = Expr::Kind::kSlice;
      ++bound;
      continue;
    }
    if (bounds[bound] != nullptr) return tokens_.Expected("']'");
    TROUPE_ASSIGN_OR_RETURN(bounds[bound], ParseExpression());
  }
  if (node->kind == Expr::Kind::kItem && bounds[0] == nullptr)
    return tokens_.Expected("a subscript");
  tokens_.Next();
  node->operands.push_back(std::move(bounds[0]));
  if (node->kind == Expr::Kind::kSlice) {
    node->operands.push_back(std::move(bounds[1]));
    node->operands.push_back(std::move(bounds[2]));
  }
  return Finish(std::move(node));
}

Result<CallArguments> ExpressionParser::ParseArguments() {
  CallArguments call;
  TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign("("));
  for (bool is_first = true; !tokens_.IsSign(")"); is_first = false) {
    if (!is_first) {
      TROUPE_RETURN_IF_ERROR(tokens_.ExpectSign(","));
      if (tokens_.IsSign(")")) break;
    }
    const bool is_named = tokens_.Is(TokenKind::kName) &&
                          tokens_.Following().kind == TokenKind::kSign &&
                          tokens_.Following().text == "=";
    if (call.more_named) return tokens_.Expected("')' behind **");
    if (tokens_.IsSign("*")) {
      if (call.more_positional) return tokens_.Expected("one * alone");
      tokens_.Next();
      TROUPE_ASSIGN_OR_RETURN(call.more_positional, ParseExpression());
    } else if (tokens_.SkipSign("**")) {
      TROUPE_ASSIGN_OR_RETURN(call.more_named, ParseExpression());
    } else if (is_named) {
      const std::string name = tokens_.Next().text;
      tokens_.Next();
      for (const auto& [known, value] : call.named) {
        if (known == name) return tokens_.Expected(fmt::format("'{}' once", name));
      }
      TROUPE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      call.named.emplace_back(name, std::move(value));
    } else {
      if (call.more_positional || !call.named.empty()) {
        return tokens_.Expected("arguments by position before those by name");
      }
      TROUPE_ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      call.positional.push_back(std::move(value));
    }
  }
  tokens_.Next();
  return call;
}

}  // namespace troupe::jinja
