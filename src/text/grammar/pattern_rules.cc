#include "text/grammar/pattern_rules.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/utf8.h"

namespace troupe {
namespace {

constexpr int kDeepestPattern = 100;  // groups in groups
constexpr std::uint32_t kMostPatternRepetitions = 100'000;
constexpr std::size_t kLongestPattern = 10'000;

CodePointSet Intersection(const CodePointSet& a, const CodePointSet& b) {
  CodePointSet outside = Complement(a);
  const CodePointSet outside_b = Complement(b);
  outside.insert(outside.end(), outside_b.begin(), outside_b.end());
  return Complement(Normalized(std::move(outside)));
}

// What ECMAScript or Python calls a blank: \S must be neither's.
CodePointSet AllBlanks() {
  return {{0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
          {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

class PatternParser {
 public:
  // `plain`: the characters of a text without quotes; null: it stands within those of JSON.
  PatternParser(std::string_view pattern, const CodePointSet* plain, GrammarBuilder& builder)
      : pattern_(pattern), plain_(plain), builder_(builder) {}

  Result<GrammarItem> Parse() {
    if (pattern_.size() > kLongestPattern) {
      return InvalidArgument("a pattern of {} bytes, at most {} allowed", pattern_.size(),
                             kLongestPattern);
    }
    TROUPE_ASSIGN_OR_RETURN(GrammarItem item, ParseAlternatives(0));
    if (at_ < pattern_.size()) return Refuse("a ')' without its '('");
    return item;
  }

 private:
  bool AtEnd() const { return at_ >= pattern_.size(); }
  char Peek() const { return AtEnd() ? '\0' : pattern_[at_]; }
  bool Take(std::string_view expected) {
    if (!pattern_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  Status Refuse(std::string_view what) const {
    return InvalidArgument("pattern '{}', byte {}: {}", pattern_, at_, what);
  }

  Result<GrammarItem> ParseAlternatives(int depth) {
    if (depth > kDeepestPattern) return Refuse("groups nested too deep");
    std::vector<GrammarSequence> alternatives;
    do {
      GrammarSequence sequence;
      // Outside of groups, what is not anchored may stand anywhere in the text.
      if (depth == 0 && !Take("^")) sequence.push_back(AnyCharacters());
      TROUPE_RETURN_IF_ERROR(ParseSequence(depth, sequence));
      if (depth == 0 && !Take("$")) sequence.push_back(AnyCharacters());
      alternatives.push_back(std::move(sequence));
    } while (Take("|"));
    return builder_.Add("pattern", std::move(alternatives));
  }

  GrammarItem AnyCharacters() const {
    const GrammarItem any = plain_ != nullptr ? GrammarItem::Set(*plain_) : builder_.Json("char");
    return any.Times(0, kUnbounded);
  }

  Status ParseSequence(int depth, GrammarSequence& sequence) {
    while (!AtEnd() && Peek() != '|' && Peek() != ')') {
      if (Peek() == '$' && depth == 0) {
        const std::string_view after = pattern_.substr(at_ + 1);
        if (after.empty() || after[0] == '|') return OkStatus();
      }
      TROUPE_ASSIGN_OR_RETURN(GrammarItem item, ParseAtom(depth));
      TROUPE_ASSIGN_OR_RETURN(item, ParseQuantifier(std::move(item)));
      sequence.push_back(std::move(item));
    }
    return OkStatus();
  }

  Result<GrammarItem> ParseAtom(int depth) {
    if (Peek() == '^' || Peek() == '$') {
      return Refuse("an anchor inside the pattern, only supported at its beginning and end");
    }
    if (Peek() == '*' || Peek() == '+' || Peek() == '?') return Refuse("nothing to repeat");
    if (Take("(")) {
      if (Take("?") && !Take(":")) {
        const bool is_named =
            Take("P<") || (Peek() == '<' && !pattern_.substr(at_).starts_with("<=") &&
                           !pattern_.substr(at_).starts_with("<!") && Take("<"));
        if (!is_named) return Refuse("looking ahead or behind is not supported");
        while (!AtEnd() && Peek() != '>') ++at_;
        if (!Take(">")) return Refuse("found the end, expected '>' after a group's name");
      }
      TROUPE_ASSIGN_OR_RETURN(GrammarItem group, ParseAlternatives(depth + 1));
      if (!Take(")")) return Refuse("found the end, expected ')'");
      return group;
    }
    TROUPE_ASSIGN_OR_RETURN(const CodePointSet set, ParseCharacterOrClass());
    if (plain_ == nullptr) return AddJsonCharacters(set, builder_);
    CodePointSet allowed = Intersection(set, *plain_);
    if (allowed.empty()) return Refuse("no such character can stand in this text");
    return GrammarItem::Set(std::move(allowed));
  }

  Result<CodePointSet> ParseCharacterOrClass() {
    if (Take("[")) return ParseClass();
    if (Take(".")) {  // no end of a line
      return Complement({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
    }
    if (Take("\\")) return ParseEscape();
    const char32_t c = ParseCharacter();
    return CodePointSet{{c, c}};
  }

  char32_t ParseCharacter() {
    const std::size_t length = ReadUtf8(pattern_.substr(at_)).length;
    at_ += length;
    return DecodeUtf8(pattern_.substr(at_ - length, length));
  }

  Result<CodePointSet> ParseClass() {
    const bool is_negated = Take("^");
    CodePointSet set;
    while (!Take("]")) {
      if (AtEnd()) return Refuse("found the end, expected ']'");
      TROUPE_ASSIGN_OR_RETURN(const CodePointSet first, ParseClassPart());
      const bool is_range = Peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
      if (!is_range) {
        set.insert(set.end(), first.begin(), first.end());
        continue;
      }
      ++at_;
      TROUPE_ASSIGN_OR_RETURN(const CodePointSet last, ParseClassPart());
      const bool are_single = first.size() == 1 && first[0].first == first[0].last &&
                              last.size() == 1 && last[0].first == last[0].last;
      if (!are_single || last[0].first < first[0].first) return Refuse("a range that is none");
      set.push_back({first[0].first, last[0].first});
    }
    set = Normalized(std::move(set));
    return is_negated ? Complement(set) : set;
  }

  Result<CodePointSet> ParseClassPart() {
    if (AtEnd()) return Refuse("found the end, expected ']'");
    if (Take("\\")) return ParseEscape();
    const char32_t c = ParseCharacter();
    return CodePointSet{{c, c}};
  }

  // After the backslash.
  Result<CodePointSet> ParseEscape() {
    if (AtEnd()) return Refuse("found the end, expected a character after the backslash");
    const CodePointSet digits = {{'0', '9'}};
    const CodePointSet word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    const char32_t c = ParseCharacter();
    switch (c) {
      case 'd':
        return digits;
      case 'D':
        return Complement(digits);
      case 'w':
        return word;
      case 'W':
        return Complement(word);
      case 's':
        return CodePointSet{{0x09, 0x0D}, {0x20, 0x20}};
      case 'S':
        return Complement(AllBlanks());
      case 'n':
        return CodePointSet{{'\n', '\n'}};
      case 'r':
        return CodePointSet{{'\r', '\r'}};
      case 't':
        return CodePointSet{{'\t', '\t'}};
      case 'f':
        return CodePointSet{{'\f', '\f'}};
      case 'v':
        return CodePointSet{{'\v', '\v'}};
      case 'x':
        return ParseHexEscape(2);
      case 'u':
        return ParseHexEscape(4);
      default:
        break;
    }
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (is_word) return Refuse("this escape is not supported");
    return CodePointSet{{c, c}};
  }

  Result<CodePointSet> ParseHexEscape(int digits) {
    std::uint32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const std::size_t digit =
          std::string_view("0123456789abcdef")
              .find(static_cast<char>(Peek() >= 'A' && Peek() <= 'F' ? Peek() + ('a' - 'A')
                                                                     : Peek()));
      if (AtEnd() || digit == std::string_view::npos) return Refuse("expected a hexadecimal digit");
      value = 16 * value + static_cast<std::uint32_t>(digit);
      ++at_;
    }
    return CodePointSet{{value, value}};
  }

  Result<GrammarItem> ParseQuantifier(GrammarItem item) {
    std::uint32_t least = 0;
    std::uint32_t most = kUnbounded;
    if (Take("?")) {
      most = 1;
    } else if (Take("+")) {
      least = 1;
    } else if (Peek() == '{' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] >= '0' &&
               pattern_[at_ + 1] <= '9') {
      ++at_;
      TROUPE_ASSIGN_OR_RETURN(least, ParseNumber());
      most = least;
      if (Take(",")) {
        most = kUnbounded;
        if (Peek() != '}') {
          TROUPE_ASSIGN_OR_RETURN(most, ParseNumber());
        }
      }
      if (!Take("}")) return Refuse("expected '}'");
      if (most < least) return Refuse("a repetition that ends before it begins");
    } else if (!Take("*")) {
      return item;
    }
    if (Peek() == '+' || Peek() == '*' || Peek() == '{')
      return Refuse("a repetition of a repetition");
    Take("?");  // prefers the shorter text, which is the same set of texts
    if (item.least != 1 || item.most != 1) item = builder_.Add("pattern", {{std::move(item)}});
    return item.Times(least, most);
  }

  Result<std::uint32_t> ParseNumber() {
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    for (; Peek() >= '0' && Peek() <= '9'; ++at_) {
      value = 10 * value + static_cast<std::uint32_t>(Peek() - '0');
      if (value > kMostPatternRepetitions) return Refuse("a repetition above 100000");
    }
    if (at_ == begin) return Refuse("expected a number");
    return value;
  }

  std::string_view pattern_;
  const CodePointSet* plain_;
  GrammarBuilder& builder_;
  std::size_t at_ = 0;
};

}  // namespace

GrammarItem AddJsonCharacters(const CodePointSet& set, GrammarBuilder& builder) {
  const CodePointSet escaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  const CodePointSet plain = Intersection(set, Complement(escaped));
  const CodePointSet written = Intersection(set, escaped);
  if (written.empty()) return GrammarItem::Set(plain);
  std::vector<GrammarSequence> alternatives;
  if (!plain.empty()) alternatives.push_back({GrammarItem::Set(plain)});
  for (const CodePointRange& range : written) {
    for (char32_t c = range.first; c <= range.last; ++c) {
      const std::string quoted = Json(std::string(1, static_cast<char>(c))).Dump();
      alternatives.push_back({GrammarItem::Text(quoted.substr(1, quoted.size() - 2))});
    }
  }
  if (alternatives.size() == 1) return alternatives[0][0];
  return builder.Add("characters", std::move(alternatives));
}

Result<GrammarItem> AddPattern(std::string_view pattern, GrammarBuilder& builder) {
  return PatternParser(pattern, nullptr, builder).Parse();
}

Result<GrammarItem> AddPlainPattern(std::string_view pattern, const CodePointSet& characters,
                                    GrammarBuilder& builder) {
  return PatternParser(pattern, &characters, builder).Parse();
}

}  // namespace troupe
