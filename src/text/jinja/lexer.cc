#include "text/jinja/lexer.h"

#include <algorithm>
#include <iterator>

#include "text/jinja/characters.h"
#include "text/jinja/string_literal.h"

namespace troupe::jinja {
namespace {

// Every line end becomes "\n", and a last one goes.
std::string NormalizeLines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (source.substr(i + 1).starts_with('\n')) ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool IsNameByte(char c) {
  return c == '_' || IsDigit(static_cast<unsigned char>(c)) ||
         static_cast<unsigned char>(c) >= 0x80 || IsLetter(static_cast<unsigned char>(c));
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> Run() {
    while (at_ < source_.size()) TROUPE_RETURN_IF_ERROR(ReadTextAndTag());
    Push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view Rest() const { return std::string_view(source_).substr(at_); }
  void Push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  template <typename... Args>
  Status Fail(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidArgument("line {}: {}", line_, fmt::format(format, std::forward<Args>(args)...));
  }

  void Advance(std::size_t bytes) {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(begin, begin + static_cast<std::ptrdiff_t>(bytes), '\n'));
    at_ += bytes;
    begins_line_ = at_ > 0 && source_[at_ - 1] == '\n';
  }
  void SkipBlanks() {
    std::size_t length = 0;
    while (at_ + length < source_.size() && IsSpace(CharacterAt(source_, at_ + length))) {
      length += CharacterLength(source_, at_ + length);
    }
    Advance(length);
  }

  static std::size_t FindTag(std::string_view text) {
    for (std::size_t i = text.find('{'); i != text.npos; i = text.find('{', i + 1)) {
      if (i + 1 < text.size() && std::string_view("{%#").find(text[i + 1]) != text.npos) return i;
    }
    return text.npos;
  }

  // The text up to the next tag, shortened as the tag says, and the tag.
  Status ReadTextAndTag() {
    const std::string_view rest = Rest();
    const std::size_t tag = FindTag(rest);
    if (tag == rest.npos) {
      PushText(rest);
      Advance(rest.size());
      return OkStatus();
    }
    const char type = rest[tag + 1];
    const char sign = tag + 2 < rest.size() ? rest[tag + 2] : '\0';
    PushText(Shorten(rest.substr(0, tag), type, sign));
    Advance(tag + 2);
    const bool has_sign = sign == '-' || (sign == '+' && type != '{');
    if (type == '#') return SkipComment();
    if (has_sign) Advance(1);
    if (type == '{') {
      Push(TokenKind::kOutputBegin, "");
      return ReadExpression(TokenKind::kOutputEnd, "}}");
    }
    if (ReadsRawTag()) return ReadRaw();
    Push(TokenKind::kBlockBegin, "");
    return ReadExpression(TokenKind::kBlockEnd, "%}");
  }

  void PushText(std::string_view text) {
    if (!text.empty()) Push(TokenKind::kText, std::string(text));
  }

  // What '-' takes from the end of a text, or the blanks of a line in which a tag stands first.
  std::string_view Shorten(std::string_view text, char type, char sign) const {
    if (sign == '-') {
      std::size_t kept = 0;  // up to behind the last character that is no blank
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = CharacterLength(text, at);
        if (!IsSpace(CharacterAt(text, at))) kept = at + length;
        at += length;
      }
      return text.substr(0, kept);
    }
    if (sign == '+' || type == '{') return text;
    const std::size_t line = text.rfind('\n') + 1;  // 0 if there is none
    if (line == 0 && !begins_line_ && at_ > 0) return text;
    for (std::size_t at = line; at < text.size(); at += CharacterLength(text, at)) {
      if (!IsSpace(CharacterAt(text, at))) return text;
    }
    return text.substr(0, line);
  }

  Status SkipComment() {
    const std::size_t end = Rest().find("#}");
    if (end == std::string_view::npos) return Fail("a comment without an end, expected '#}}'");
    const char before = end > 0 ? Rest()[end - 1] : '\0';
    Advance(end + 2);
    EndTag(before);
    return OkStatus();
  }

  // Behind a tag's end: '-' takes all blanks, nothing takes the line end.
  void EndTag(char sign) {
    if (sign == '-') {
      SkipBlanks();
    } else if (sign != '+' && Rest().starts_with('\n')) {
      Advance(1);
    }
  }

  // Whether the tag is {% word %}; then `length` is up to behind it, `sign` that of its end.
  static bool IsWordTag(std::string_view text, std::string_view word, std::size_t& length,
                        char& sign) {
    std::size_t at = 0;
    const auto skip_blanks = [&] {
      while (at < text.size() && IsSpace(CharacterAt(text, at))) at += CharacterLength(text, at);
    };
    skip_blanks();
    if (!text.substr(at).starts_with(word)) return false;
    at += word.size();
    skip_blanks();
    sign = at < text.size() && (text[at] == '-' || text[at] == '+') ? text[at++] : '\0';
    if (!text.substr(at).starts_with("%}")) return false;
    length = at + 2;
    return true;
  }

  bool ReadsRawTag() {
    std::size_t length = 0;
    char sign = '\0';
    if (!IsWordTag(Rest(), "raw", length, sign) || sign == '+') return false;
    Advance(length);
    if (sign == '-') SkipBlanks();
    return true;
  }

  Status ReadRaw() {
    const std::string_view rest = Rest();
    for (std::size_t tag = rest.find("{%"); tag != rest.npos; tag = rest.find("{%", tag + 1)) {
      const char sign = tag + 2 < rest.size() ? rest[tag + 2] : '\0';
      const std::size_t skipped = tag + (sign == '-' || sign == '+' ? 3 : 2);
      std::size_t length = 0;
      char end_sign = '\0';
      if (!IsWordTag(rest.substr(skipped), "endraw", length, end_sign)) continue;
      PushText(Shorten(rest.substr(0, tag), '%', sign));
      Advance(skipped + length);
      EndTag(end_sign);
      return OkStatus();
    }
    return Fail("a raw block without an end, expected 'endraw'");
  }

  // Tokens up to the end of the tag, which is none inside of brackets.
  Status ReadExpression(TokenKind end_kind, std::string_view end) {
    std::string open;
    while (true) {
      SkipBlanks();
      const std::string_view rest = Rest();
      if (rest.empty()) return Fail("the template ends inside of a tag, expected '{}'", end);
      if (open.empty()) {
        const bool is_block = end_kind == TokenKind::kBlockEnd;
        const bool has_sign = rest[0] == '-' || (rest[0] == '+' && is_block);
        if (rest.substr(has_sign ? 1 : 0).starts_with(end)) {
          Push(end_kind, "");
          Advance(has_sign ? 3 : 2);
          if (is_block) {
            EndTag(has_sign ? rest[0] : '\0');
          } else if (has_sign) {
            SkipBlanks();
          }
          return OkStatus();
        }
      }
      TROUPE_RETURN_IF_ERROR(ReadToken(rest, open));
    }
  }

  Status ReadToken(std::string_view rest, std::string& open) {
    const char c = rest[0];
    if (IsDigit(static_cast<unsigned char>(c))) return ReadNumber(rest);
    if (IsNameByte(c)) {
      std::size_t length = 1;
      while (length < rest.size() && IsNameByte(rest[length])) ++length;
      Push(TokenKind::kName, std::string(rest.substr(0, length)));
      Advance(length);
      return OkStatus();
    }
    if (c == '\'' || c == '"') return ReadString(rest);
    constexpr std::string_view kSigns[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                           "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                           ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto sign = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](std::string_view known) { return rest.starts_with(known); });
    if (sign == std::end(kSigns)) {
      return Fail("found '{}', expected an expression", rest.substr(0, CharacterLength(rest, 0)));
    }
    if (std::string_view("([{").find(c) != std::string_view::npos) open += c;
    if (std::string_view(")]}").find(c) != std::string_view::npos) {
      constexpr std::string_view kPairs = "()[]{}";
      if (open.empty() || kPairs[kPairs.find(open.back()) + 1] != c) {
        return Fail("found '{}', which closes no bracket", c);
      }
      open.pop_back();
    }
    Push(TokenKind::kSign, std::string(*sign));
    Advance(sign->size());
    return OkStatus();
  }

  // Digits from `at`, with single '_' between them.
  static std::size_t SkipDigits(std::string_view text, std::size_t at) {
    while (at < text.size() && (IsDigit(static_cast<unsigned char>(text[at])) ||
                                (text[at] == '_' && at + 1 < text.size() && at > 0 &&
                                 IsDigit(static_cast<unsigned char>(text[at - 1])) &&
                                 IsDigit(static_cast<unsigned char>(text[at + 1]))))) {
      ++at;
    }
    return at;
  }

  Status ReadNumber(std::string_view rest) {
    std::size_t length = SkipDigits(rest, 0);
    bool is_float = false;
    const auto digit_at = [&](std::size_t at) {
      return at < rest.size() && IsDigit(static_cast<unsigned char>(rest[at]));
    };
    const bool behind_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::kSign &&
                            tokens_.back().text == "." && source_[at_ - 1] == '.';
    if (!behind_dot && length < rest.size() && rest[length] == '.' && digit_at(length + 1)) {
      length = SkipDigits(rest, length + 1);
      is_float = true;
    }
    if (!behind_dot && length < rest.size() && (rest[length] | 0x20) == 'e') {
      const bool has_sign =
          length + 1 < rest.size() && (rest[length + 1] == '+' || rest[length + 1] == '-');
      if (digit_at(length + (has_sign ? 2 : 1))) {
        length = SkipDigits(rest, length + (has_sign ? 2 : 1));
        is_float = true;
      }
    }
    std::string digits(rest.substr(0, length));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    const bool leads_with_zero =
        digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != digits.npos;
    const bool has_base = digits == "0" && length < rest.size() &&
                          std::string_view("xXoObB").find(rest[length]) != std::string_view::npos;
    if (!is_float && (leads_with_zero || has_base)) {
      return Fail("a number that begins with 0, expected a decimal one");
    }
    Push(is_float ? TokenKind::kFloat : TokenKind::kInteger, std::move(digits));
    Advance(length);
    return OkStatus();
  }

  Status ReadString(std::string_view rest) {
    std::size_t end = 1;
    while (end < rest.size() && rest[end] != rest[0]) end += rest[end] == '\\' ? 2 : 1;
    if (end >= rest.size()) return Fail("a string without an end");
    Result<std::string> text = ReadStringLiteral(rest.substr(1, end - 1));
    if (!text.ok()) return Fail("{}", text.status().message());
    Push(TokenKind::kString, *std::move(text));
    Advance(end + 1);
    return OkStatus();
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool begins_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  return Lexer(NormalizeLines(source)).Run();
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kString:
      return fmt::format("the string '{}'", token.text);
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace troupe::jinja
