#include "text/grammar/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "text/utf8.h"

namespace troupe {
namespace {

// Parentheses in parentheses: each takes a frame of the program's stack.
constexpr int kDeepestGroup = 200;

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

std::optional<std::uint32_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

class GbnfParser {
 public:
  GbnfParser(std::string_view text, std::string_view root, const GrammarLimits& limits)
      : text_(text), root_(root), limits_(limits) {}

  Result<Grammar> Parse() {
    if (const auto at = FindInvalidUtf8(text_); at.has_value()) {
      return InvalidArgument("{}: a byte that is not valid UTF-8", PlaceOf(*at));
    }
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (text_[i] == '\n') line_starts_.push_back(i + 1);
    }
    SkipBlanks(/*newlines=*/true);
    while (!AtEnd()) TROUPE_RETURN_IF_ERROR(ParseRule());
    for (const auto& [id, at] : uses_) {
      if (defined_[id]) continue;
      return InvalidArgument("{}: rule '{}' is used and nowhere defined", PlaceOf(at),
                             grammar_.rules[id].name);
    }
    NameGroups();
    const auto root = ids_.find(root_);
    if (root == ids_.end()) return InvalidArgument("no rule '{}', with which texts begin", root_);
    grammar_.root = root->second;
    TROUPE_RETURN_IF_ERROR(Validate(grammar_, limits_));
    return std::move(grammar_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Next() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  std::size_t LineOf(std::size_t at) const {
    const auto after = std::ranges::upper_bound(line_starts_, at);
    return static_cast<std::size_t>(after - line_starts_.begin());
  }
  std::string PlaceOf(std::size_t at) const {
    const std::size_t begin = line_starts_[LineOf(at) - 1];
    std::size_t column = 1;
    for (const char c : text_.substr(begin, at - begin)) column += (c & 0xC0) != 0x80 ? 1 : 0;
    return fmt::format("line {}, column {}", LineOf(at), column);
  }

  Status Expected(std::string_view what) const {
    std::string found = "the end";
    if (Next() == '\n' || Next() == '\r') {
      found = "the end of the line";
    } else if (!AtEnd()) {
      found = fmt::format("'{}'", text_.substr(at_, ReadUtf8(text_.substr(at_)).length));
    }
    return InvalidArgument("{}: found {}, expected {}", PlaceOf(at_), found, what);
  }

  void SkipBlanks(bool newlines) {
    while (!AtEnd()) {
      const char c = Next();
      if (c == '#') {
        while (!AtEnd() && Next() != '\n' && Next() != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  Result<std::string_view> ParseName(std::string_view expected) {
    const std::size_t begin = at_;
    while (IsNameCharacter(Next())) ++at_;
    if (at_ == begin) return Expected(expected);
    return text_.substr(begin, at_ - begin);
  }

  Result<RuleId> AddRule(std::string name, std::size_t at) {
    if (grammar_.rules.size() >= limits_.rules) {
      return Error(Code::kResourceExhausted, "{}: more than {} rules and groups", PlaceOf(at),
                   limits_.rules);
    }
    grammar_.rules.push_back({.name = std::move(name)});
    defined_.push_back(false);
    return static_cast<RuleId>(grammar_.rules.size() - 1);
  }

  Result<RuleId> RuleNamed(std::string_view name, std::size_t at) {
    if (const auto known = ids_.find(std::string(name)); known != ids_.end()) return known->second;
    TROUPE_ASSIGN_OR_RETURN(const RuleId id, AddRule(std::string(name), at));
    ids_.emplace(name, id);
    return id;
  }

  void Define(RuleId id, std::size_t at, std::vector<GrammarSequence> alternatives) {
    grammar_.rules[id].alternatives = std::move(alternatives);
    grammar_.rules[id].place = fmt::format("line {}", LineOf(at));
    defined_[id] = true;
  }

  Status ParseRule() {
    const std::size_t begin = at_;
    TROUPE_ASSIGN_OR_RETURN(const std::string_view name, ParseName("the name of a rule"));
    TROUPE_ASSIGN_OR_RETURN(const RuleId id, RuleNamed(name, begin));
    if (defined_[id]) {
      return InvalidArgument("{}: rule '{}' is defined twice", PlaceOf(begin), name);
    }
    SkipBlanks(false);
    if (!Take("::=")) return Expected("'::='");
    SkipBlanks(true);
    TROUPE_ASSIGN_OR_RETURN(auto alternatives, ParseAlternatives(name, 0));
    Define(id, begin, std::move(alternatives));
    if (!AtEnd() && Next() != '\n' && Next() != '\r') return Expected("'|' or the end of the rule");
    SkipBlanks(true);
    return OkStatus();
  }

  Result<std::vector<GrammarSequence>> ParseAlternatives(std::string_view rule, int depth) {
    std::vector<GrammarSequence> alternatives;
    do {
      SkipBlanks(!alternatives.empty() || depth > 0);
      TROUPE_ASSIGN_OR_RETURN(GrammarSequence sequence, ParseSequence(rule, depth));
      alternatives.push_back(std::move(sequence));
    } while (Take("|"));
    return alternatives;
  }

  Result<GrammarSequence> ParseSequence(std::string_view rule, int depth) {
    GrammarSequence sequence;
    while (!AtEnd()) {
      const char c = Next();
      if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
      TROUPE_ASSIGN_OR_RETURN(GrammarItem item, ParseItem(rule, depth));
      // Between an item and what repeats it, blanks may stand.
      const bool newlines = depth > 0;
      SkipBlanks(newlines);
      if (++items_ > limits_.items) {
        return Error(Code::kResourceExhausted, "{}: more than {} items", PlaceOf(at_),
                     limits_.items);
      }
      TROUPE_ASSIGN_OR_RETURN(item, ParseRepetitions(rule, std::move(item), newlines));
      // An empty text is written for an alternative that is empty.
      const bool is_empty = item.kind == GrammarItem::Kind::kText && item.text.empty();
      if (!is_empty) sequence.push_back(std::move(item));
    }
    return sequence;
  }

  Result<GrammarItem> ParseItem(std::string_view rule, int depth) {
    const std::size_t begin = at_;
    const char c = Next();
    if (c == '"') return ParseText();
    if (c == '[') return ParseClass();
    if (c == '(') return ParseGroup(rule, depth);
    if (Take(".")) return GrammarItem::Set({{0, kLastCodePoint}});
    if (c == '<' || c == '!') {
      return InvalidArgument("{}: a reference to a token, expected text: tokens cannot be named",
                             PlaceOf(at_));
    }
    TROUPE_ASSIGN_OR_RETURN(
        const std::string_view name,
        ParseName("a text in quotes, a class, a group, a rule's name, '|' or the end of the rule"));
    TROUPE_ASSIGN_OR_RETURN(const RuleId id, RuleNamed(name, begin));
    uses_.emplace_back(id, begin);
    return GrammarItem::Rule(id);
  }

  Result<GrammarItem> ParseGroup(std::string_view rule, int depth) {
    const std::size_t begin = at_++;
    if (depth >= kDeepestGroup) {
      return InvalidArgument("{}: groups nested more than {} deep", PlaceOf(begin), kDeepestGroup);
    }
    TROUPE_ASSIGN_OR_RETURN(auto alternatives, ParseAlternatives(rule, depth + 1));
    if (!Take(")")) return Expected("')'");
    return AddGroup(rule, begin, std::move(alternatives));
  }

  // As a rule of its own, which bears the name of the rule around it until NameGroups.
  Result<GrammarItem> AddGroup(std::string_view rule, std::size_t at,
                               std::vector<GrammarSequence> alternatives) {
    TROUPE_ASSIGN_OR_RETURN(const RuleId id, AddRule(std::string(rule), at));
    Define(id, at, std::move(alternatives));
    groups_.push_back(id);
    return GrammarItem::Rule(id);
  }

  // Gives each group a name that no rule of the text has.
  void NameGroups() {
    std::size_t number = 0;
    for (const RuleId id : groups_) {
      std::string& name = grammar_.rules[id].name;
      std::string unique;
      do {
        unique = fmt::format("{}-{}", name, ++number);
      } while (ids_.contains(unique));
      name = std::move(unique);
    }
  }

  Result<GrammarItem> ParseText() {
    ++at_;
    std::string text;
    while (Next() != '"') {
      TROUPE_ASSIGN_OR_RETURN(const char32_t c, ParseCharacter("'\"', the end of the text"));
      if (c >= 0xD800 && c <= 0xDFFF) return Expected("a character that is no surrogate before");
      AppendUtf8(c, text);
    }
    ++at_;
    return GrammarItem::Text(text);
  }

  Result<GrammarItem> ParseClass() {
    ++at_;
    const bool is_negated = Take("^");
    CodePointSet set;
    while (Next() != ']') {
      constexpr std::string_view kEnd = "']', the end of the class";
      TROUPE_ASSIGN_OR_RETURN(const char32_t first, ParseCharacter(kEnd));
      char32_t last = first;
      if (Next() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        const std::size_t dash = at_++;
        TROUPE_ASSIGN_OR_RETURN(last, ParseCharacter(kEnd));
        if (last < first) {
          return InvalidArgument("{}: a range that ends before it begins", PlaceOf(dash));
        }
      }
      set.push_back({first, last});
    }
    ++at_;
    set = Normalized(std::move(set));
    return GrammarItem::Set(is_negated ? Complement(set) : std::move(set));
  }

  // One character of a text or class, which may be written as an escape.
  Result<char32_t> ParseCharacter(std::string_view end) {
    if (AtEnd()) return Expected(end);
    if (Next() != '\\') {
      const std::size_t length = ReadUtf8(text_.substr(at_)).length;
      at_ += length;
      return DecodeUtf8(text_.substr(at_ - length, length));
    }
    ++at_;
    if (Take("x")) return ParseHex(2);
    if (Take("u")) return ParseHex(4);
    if (Take("U")) return ParseHex(8);
    if (Take("n")) return U'\n';
    if (Take("r")) return U'\r';
    if (Take("t")) return U'\t';
    for (const std::string_view itself : {"\\", "\"", "[", "]", "-", "^", "/"}) {
      if (Take(itself)) return static_cast<char32_t>(itself[0]);
    }
    return Expected("one of x u U n r t \\ \" [ ] - ^ / after a backslash");
  }

  Result<char32_t> ParseHex(int digits) {
    std::uint32_t value = 0;
    const std::size_t begin = at_;
    for (int i = 0; i < digits; ++i) {
      const auto digit = HexDigit(Next());
      if (!digit) return Expected(fmt::format("a hexadecimal digit, one of {}", digits));
      value = value << 4 | *digit;
      ++at_;
    }
    if (value > kLastCodePoint) {
      return InvalidArgument("{}: {:X} is no code point, expected at most 10FFFF", PlaceOf(begin),
                             value);
    }
    return static_cast<char32_t>(value);
  }

  Result<GrammarItem> ParseRepetitions(std::string_view rule, GrammarItem item, bool newlines) {
    while (true) {
      const std::size_t begin = at_;
      std::uint32_t least = 0;
      std::uint32_t most = kUnbounded;
      if (Take("?")) {
        most = 1;
      } else if (Take("+")) {
        least = 1;
      } else if (Take("{")) {
        TROUPE_RETURN_IF_ERROR(ParseBounds(begin, least, most));
      } else if (!Take("*")) {
        return item;
      }
      if (item.least != 1 || item.most != 1) {  // a repetition of a repetition
        TROUPE_ASSIGN_OR_RETURN(item, AddGroup(rule, begin, {{std::move(item)}}));
      }
      item = item.Times(least, most);
      SkipBlanks(newlines);
    }
  }

  Status ParseBounds(std::size_t begin, std::uint32_t& least, std::uint32_t& most) {
    SkipBlanks(false);
    TROUPE_ASSIGN_OR_RETURN(least, ParseBound());
    most = least;
    SkipBlanks(false);
    if (Take(",")) {
      SkipBlanks(false);
      most = kUnbounded;
      if (Next() != '}') {
        TROUPE_ASSIGN_OR_RETURN(most, ParseBound());
      }
      SkipBlanks(false);
    }
    if (!Take("}")) return Expected("'}'");
    if (least > most) {
      return InvalidArgument("{}: a repetition that ends before it begins", PlaceOf(begin));
    }
    return OkStatus();
  }

  Result<std::uint32_t> ParseBound() {
    if (Next() < '0' || Next() > '9') return Expected("a number");
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; Next() >= '0' && Next() <= '9'; ++at_) {
      value = 10 * value + static_cast<std::uint64_t>(Next() - '0');
      if (value > limits_.repetitions) {
        return InvalidArgument("{}: a repetition above {}, which is the limit", PlaceOf(begin),
                               limits_.repetitions);
      }
    }
    return static_cast<std::uint32_t>(value);
  }

  std::string_view text_;
  std::string root_;
  GrammarLimits limits_;
  std::size_t at_ = 0;
  std::size_t items_ = 0;
  std::vector<std::size_t> line_starts_ = {0};
  Grammar grammar_;
  std::vector<bool> defined_;                         // by rule
  std::unordered_map<std::string, RuleId> ids_;       // of rules that have a name in the text
  std::vector<std::pair<RuleId, std::size_t>> uses_;  // and where
  std::vector<RuleId> groups_;
};

}  // namespace

Result<Grammar> ParseGbnf(std::string_view text, const GrammarLimits& limits) {
  return ParseGbnf(text, "root", limits);
}

Result<Grammar> ParseGbnf(std::string_view text, std::string_view root,
                          const GrammarLimits& limits) {
  return GbnfParser(text, root, limits).Parse();
}

}  // namespace troupe
