// A parser's place among the tokens, how deep it is, and what its errors say.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/parser.h"

namespace troupe::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& Peek() const { return tokens_[at_]; }
  // The last token is not passed.
  const Token& Next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  const Token& Following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }

  bool Is(Token::Kind kind) const { return Peek().kind == kind; }
  bool IsName(std::string_view name) const { return Is(Token::Kind::kName) && Peek().text == name; }
  bool IsSign(std::string_view sign) const { return Is(Token::Kind::kSign) && Peek().text == sign; }
  bool IsAnyName(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (IsName(name)) return true;
    }
    return false;
  }
  bool SkipName(std::string_view name) { return IsName(name) && (Next(), true); }
  bool SkipSign(std::string_view sign) { return IsSign(sign) && (Next(), true); }

  Status Expected(std::string_view what) const {
    return InvalidArgument("line {}: found {}, expected {}", Peek().line, Describe(Peek()), what);
  }
  Status ExpectSign(std::string_view sign) {
    return SkipSign(sign) ? OkStatus() : Expected(fmt::format("'{}'", sign));
  }
  Status ExpectKind(Token::Kind kind, std::string_view what) {
    if (!Is(kind)) return Expected(what);
    Next();
    return OkStatus();
  }
  Result<std::string> ExpectName(std::string_view what) {
    if (!Is(Token::Kind::kName)) return Expected(what);
    return Next().text;
  }

  // While one lives, the parser is a level deeper.
  class Deeper {
   public:
    explicit Deeper(TokenStream& stream) : stream_(stream) { ++stream_.depth_; }
    ~Deeper() { --stream_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Status Check() const { return stream_.CheckDepth(stream_.depth_); }

   private:
    TokenStream& stream_;
  };
  Status CheckDepth(int depth) const {
    if (depth <= kDeepestTree) return OkStatus();
    return Error(Code::kResourceExhausted, "line {}: nested deeper than {}", Peek().line,
                 kDeepestTree);
  }

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace troupe::jinja
