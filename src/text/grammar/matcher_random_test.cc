// Random grammars: what they derive is accepted, and what is near it exactly when a recognizer by
// the book agrees.
#include <gtest/gtest.h>

#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"
#include "text/grammar/random_grammar_for_test.h"
#include "text/utf8.h"

namespace troupe {
namespace {

using Kind = GrammarItem::Kind;
constexpr std::string_view kAlphabet = "abc";

// Derives a text, or gives up when it becomes long.
class RandomDerivation {
 public:
  RandomDerivation(const Grammar& grammar, Rng& rng) : grammar_(grammar), rng_(rng) {}

  bool Derive(std::string& out) { return Rule(grammar_.root, 0, out); }

 private:
  bool Rule(RuleId id, int depth, std::string& out) {
    if (depth > 12 || out.size() > 24) return false;
    const auto& alternatives = grammar_.rules[id].alternatives;
    for (const GrammarItem& item : alternatives[rng_.Below(alternatives.size())]) {
      std::uint64_t times = item.least;
      if (item.most > item.least) {
        times += rng_.Below(1 + std::min(item.most - item.least, std::uint32_t{2}));
      }
      for (; times > 0; --times) {
        if (item.kind == Kind::kText) {
          out += item.text;
        } else if (item.kind == Kind::kSet) {
          const CodePointRange& range = item.set[rng_.Below(item.set.size())];
          AppendUtf8(range.first + static_cast<char32_t>(rng_.Below(range.last - range.first + 1)),
                     out);
        } else if (!Rule(item.rule, depth + 1, out)) {
          return false;
        }
      }
    }
    return true;
  }

  const Grammar& grammar_;
  Rng& rng_;
};

// By the book: the positions where each rule can end when it begins at a position, as the least
// fixpoint of all equations together. Slow, and sure to end.
class Recognizer {
 public:
  Recognizer(const Grammar& grammar, std::string_view text) : grammar_(grammar), text_(text) {
    for (bool changed = true; changed;) {
      changed = false;
      for (RuleId rule = 0; rule < grammar.rules.size(); ++rule) {
        for (std::size_t from = 0; from <= text.size(); ++from) {
          std::set<std::size_t> ends = EndsOfRule(rule, from);
          auto& known = ends_[{rule, from}];
          if (ends.size() > known.size()) {
            known = std::move(ends);
            changed = true;
          }
        }
      }
    }
  }

  bool Matches() { return ends_[{grammar_.root, 0}].contains(text_.size()); }

 private:
  using Ends = std::set<std::size_t>;

  Ends EndsOfRule(RuleId rule, std::size_t from) {
    Ends all;
    for (const GrammarSequence& sequence : grammar_.rules[rule].alternatives) {
      Ends ends = {from};
      for (const GrammarItem& item : sequence) ends = Repeat(item, ends);
      all.insert(ends.begin(), ends.end());
    }
    return all;
  }

  Ends Repeat(const GrammarItem& item, Ends ends) {
    for (std::uint32_t i = 0; i < item.least; ++i) ends = Once(item, ends);
    Ends all = ends;
    for (std::uint32_t i = item.least; i < item.most && i < item.least + text_.size() + 1; ++i) {
      ends = Once(item, ends);
      all.insert(ends.begin(), ends.end());
    }
    return all;
  }

  Ends Once(const GrammarItem& item, const Ends& starts) {
    Ends ends;
    for (const std::size_t start : starts) {
      const std::string_view rest = text_.substr(start);
      if (item.kind == Kind::kText) {
        if (rest.starts_with(item.text)) ends.insert(start + item.text.size());
      } else if (item.kind == Kind::kRule) {
        const auto& known = ends_[{item.rule, start}];
        ends.insert(known.begin(), known.end());
      } else if (!rest.empty()) {
        const Utf8Prefix prefix = ReadUtf8(rest);
        if (prefix.state != Utf8Prefix::State::kValid) continue;
        const char32_t c = DecodeUtf8(rest.substr(0, prefix.length));
        for (const CodePointRange& range : item.set) {
          if (c >= range.first && c <= range.last) ends.insert(start + prefix.length);
        }
      }
    }
    return ends;
  }

  const Grammar& grammar_;
  std::string_view text_;
  std::map<std::pair<RuleId, std::size_t>, Ends> ends_;
};

// Nothing where the grammar is too ambiguous, which random ones may be.
std::optional<bool> Matches(const std::shared_ptr<const Automaton>& automaton,
                            std::string_view text) {
  Matcher matcher(automaton);
  const Result<bool> accepted = matcher.Accept(text);
  if (!accepted.ok()) {
    EXPECT_EQ(accepted.status().code(), Code::kResourceExhausted);
    return std::nullopt;
  }
  if (!*accepted) return false;
  const Result<bool> can_end = matcher.CanEnd();
  return can_end.ok() ? std::optional(*can_end) : std::nullopt;
}

std::string Mutated(std::string text, Rng& rng) {
  for (std::uint64_t n = 1 + rng.Below(2); n > 0; --n) {
    const std::size_t at = rng.Below(text.size() + 1);
    const char other = rng.Below(9) == 0 ? '\xA9' : kAlphabet[rng.Below(3)];
    switch (rng.Below(4)) {
      case 0:
        text.insert(at, 1, other);
        break;
      case 1:
        if (at < text.size()) text.erase(at, 1);
        break;
      case 2:
        if (at < text.size()) text[at] = other;
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

TEST(RandomGrammars, AcceptWhatTheyDeriveAndAgreeWithTheBookOnWhatIsNearIt) {
  Rng rng(TestSeed());
  int derived = 0;
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    const Grammar grammar = RandomGrammar(rng);
    const auto automaton = Automaton::Compile(grammar).value();
    const Grammar printed = ParseGbnf(ToString(grammar)).value();
    const auto again = Automaton::Compile(printed).value();
    for (int i = 0; i < 8; ++i) {
      std::string text;
      if (!RandomDerivation(grammar, rng).Derive(text)) continue;
      ++derived;
      ASSERT_TRUE(Matches(automaton, text).value_or(true))
          << ToString(grammar) << "derives '" << text << "'";
      for (int j = 0; j < 4; ++j) {
        const std::string near = Mutated(text, rng);
        const std::optional<bool> matches = Matches(j % 2 == 0 ? automaton : again, near);
        if (!matches) continue;
        ASSERT_EQ(*matches, Recognizer(grammar, near).Matches())
            << ToString(grammar) << "and '" << near << "'";
        ++(*matches ? accepted : refused);
      }
    }
  }
  // Both answers must have been put to the test.
  EXPECT_GT(derived, 500);
  EXPECT_GT(accepted, 200);
  EXPECT_GT(refused, 200);
}

TEST(RandomGrammars, AcceptAByteExactlyWhenSomeTextGoesOnWithIt) {
  Rng rng(TestSeed() + 1);
  for (int round = 0; round < 150; ++round) {
    const Grammar grammar = RandomGrammar(rng);
    Matcher matcher(Automaton::Compile(grammar).value());
    std::string text;
    for (int step = 0; step < 40; ++step) {
      const auto found = matcher.AllowedBytes();
      if (!found.ok()) break;  // too ambiguous
      const std::bitset<256>& allowed = *found;
      // No dead end: where nothing may follow, the text is whole.
      if (allowed.none()) {
        ASSERT_TRUE(matcher.IsDone().value()) << ToString(grammar) << text;
        break;
      }
      std::string bytes;
      for (std::size_t byte = 0; byte < 256; ++byte) {
        Matcher copy = matcher;
        const std::string one(1, static_cast<char>(byte));
        ASSERT_EQ(copy.Accept(one).value(), allowed[byte]) << ToString(grammar) << text;
        if (allowed[byte]) bytes += one;
      }
      text += bytes[rng.Below(bytes.size())];
      ASSERT_TRUE(matcher.Accept(text.substr(text.size() - 1)).value());
    }
    if (text.size() < 40) {
      EXPECT_TRUE(Recognizer(grammar, text).Matches()) << ToString(grammar) << text;
    }
  }
}

}  // namespace
}  // namespace troupe
