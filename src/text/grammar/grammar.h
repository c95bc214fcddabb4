// A context-free grammar over Unicode text, as a value: rules of alternatives of repeated items.
// Parsers (gbnf.h, json_schema.h) make it, automaton.h compiles it to bytes. Holds no meaning
// beyond that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

inline constexpr char32_t kLastCodePoint = 0x10FFFF;

// All code points from first to last; surrogates in between have no UTF-8 and match nothing.
struct CodePointRange {
  char32_t first = 0;
  char32_t last = 0;

  bool operator==(const CodePointRange&) const = default;
};

// Ranges in ascending order with gaps between them.
using CodePointSet = std::vector<CodePointRange>;
CodePointSet Normalized(CodePointSet set);
CodePointSet Complement(const CodePointSet& set);  // of a normalized set

using RuleId = std::uint32_t;
inline constexpr std::uint32_t kUnbounded = std::numeric_limits<std::uint32_t>::max();

// `least` to `most` times one text, one character of a set, or one rule.
struct GrammarItem {
  enum class Kind : std::uint8_t { kText, kSet, kRule };

  Kind kind = Kind::kText;
  std::string text;  // valid UTF-8
  CodePointSet set;
  RuleId rule = 0;
  std::uint32_t least = 1;
  std::uint32_t most = 1;

  static GrammarItem Text(std::string_view text);
  static GrammarItem Set(CodePointSet set);  // of any order
  static GrammarItem Rule(RuleId rule);
  GrammarItem Times(std::uint32_t at_least, std::uint32_t at_most) const;

  bool operator==(const GrammarItem&) const = default;
};

using GrammarSequence = std::vector<GrammarItem>;

struct GrammarRule {
  std::string name;                           // of letters, digits, '-' and '_'
  std::vector<GrammarSequence> alternatives;  // none: matches nothing, not even the empty text
  std::string place;                          // for errors: where the rule comes from; may be empty

  bool operator==(const GrammarRule&) const = default;
};

struct Grammar {
  std::vector<GrammarRule> rules;
  RuleId root = 0;

  bool operator==(const Grammar&) const = default;
};

// What a grammar of a stranger may take. Each repetition counts once, however often it repeats.
struct GrammarLimits {
  std::size_t rules = 50'000;
  std::size_t items = 400'000;
  std::size_t text_bytes = 4'000'000;
  std::size_t ranges = 400'000;
  std::uint32_t repetitions = 1'000'000;  // as a bound: {m,n}
};

// Whether an automaton can be made of it: every reference names a rule, no rule begins with itself,
// repetitions end after they begin, the root matches some text, and the limits are kept.
Status Validate(const Grammar& grammar, const GrammarLimits& limits = {});

// As GBNF, a rule a line; the root is printed under the name "root".
std::string ToString(const Grammar& grammar);

}  // namespace troupe
