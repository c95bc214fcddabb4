#include "text/grammar/anchored_start.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/matcher.h"

namespace troupe {
namespace {

// After a start comes a number.
Grammar After(const std::vector<std::string>& starts) {
  GrammarBuilder builder;
  const GrammarItem digits = GrammarItem::Set({{'0', '9'}}).Times(1, kUnbounded);
  std::vector<AnchoredStart> anchored;
  for (const std::string& start : starts) anchored.push_back({start, digits});
  const RuleId root = FreeUnlessStarted(anchored, builder).rule;
  return std::move(builder).Take(root);
}

bool StartFits(const Grammar& grammar, std::string_view text) {
  Matcher matcher(Automaton::Compile(grammar).value());
  return matcher.Accept(text).value() && matcher.CanEnd().value();
}

TEST(AnchoredStart, ATextIsFreeUnlessItBeginsWithOneOfThem) {
  const Grammar grammar = After({"call ", "case "});
  for (const char* text : {"", "c", "ca", "cal", "call", "called", "case", "no call ", "cac", "é",
                           "call 12", "case 3", " call x"}) {
    EXPECT_TRUE(StartFits(grammar, text)) << text;
  }
  for (const char* text : {"call ", "call x", "call 1 2", "case 3x", "\xFF"}) {
    EXPECT_FALSE(StartFits(grammar, text)) << text;
  }
  EXPECT_TRUE(StartFits(ParseGbnf(ToString(grammar)).value(), "call 12"));
}

TEST(AnchoredStart, StartsMayBeOfAnyCharacters) {
  const Grammar grammar = After({"é→", "èx"});
  EXPECT_TRUE(StartFits(grammar, "é→7"));
  EXPECT_TRUE(StartFits(grammar, "é7"));
  EXPECT_FALSE(StartFits(grammar, "é→a"));
  EXPECT_FALSE(StartFits(grammar, "èx"));
}

TEST(AnchoredStart, DecidesAsAComparisonOfBeginningsDoes) {
  Rng rng(TestSeed());
  const auto word = [&](std::uint64_t longest) {
    std::string text;
    for (std::uint64_t n = 1 + rng.Below(longest); n > 0; --n) text += "ab1"[rng.Below(3)];
    return text;
  };
  int started = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> starts;
    for (std::uint64_t n = rng.Below(4); n > 0; --n) {
      const std::string start = word(4) + ":";  // so that none begins with another
      if (std::ranges::find(starts, start) == starts.end()) starts.push_back(start);
    }
    std::string text = !starts.empty() && rng.Below(2) == 0 ? starts[0] : word(4) + ":";
    text += word(3);
    bool expected = true;
    for (const std::string& start : starts) {
      if (!text.starts_with(start)) continue;
      expected = text.find_first_not_of("0123456789", start.size()) == text.npos;
      ++started;
    }
    ASSERT_EQ(StartFits(After(starts), text), expected) << text;
  }
  EXPECT_GT(started, 100);
}

}  // namespace
}  // namespace troupe
