// Against a slow model that compares every two places of a text.
#include "text/draft/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

SuffixAutomaton::Match SlowLongest(std::span<const TokenId> text) {
  SuffixAutomaton::Match best;
  for (std::size_t end = 1; end < text.size(); ++end) {
    std::size_t length = 0;
    while (length < end && text[end - 1 - length] == text[text.size() - 1 - length]) ++length;
    if (length > best.length) best = {.length = length, .end = end};
  }
  return best;
}

TEST(SuffixAutomaton, FindsTheLongestEndThatOccurredBefore) {
  SuffixAutomaton automaton;
  for (const TokenId token : {1, 2, 3, 9, 1, 2, 3}) automaton.Append(token);
  EXPECT_EQ(automaton.Longest(), (SuffixAutomaton::Match{.length = 3, .end = 3}));
  automaton.Append(7);
  EXPECT_EQ(automaton.Longest().length, 0u);
}

TEST(SuffixAutomaton, KnowsNothingOfAnEmptyTextAndOfOneToken) {
  SuffixAutomaton automaton;
  EXPECT_EQ(automaton.Longest(), SuffixAutomaton::Match());
  automaton.Append(5);
  EXPECT_EQ(automaton.Longest(), SuffixAutomaton::Match());
}

TEST(SuffixAutomaton, AnOccurrenceMayOverlapTheEnd) {
  SuffixAutomaton automaton;
  for (int i = 0; i < 6; ++i) automaton.Append(4);
  EXPECT_EQ(automaton.Longest(), (SuffixAutomaton::Match{.length = 5, .end = 5}));
}

TEST(SuffixAutomaton, AgreesWithASlowModelAtEveryToken) {
  Rng rng(TestSeed());
  for (int round = 0; round < 60; ++round) {
    const std::uint64_t alphabet = 1 + rng.Below(round % 3 == 0 ? 2 : 8);
    SuffixAutomaton automaton(rng.Below(40));
    std::vector<TokenId> text;
    while (text.size() < 150) {
      if (text.size() > 4 && rng.Below(3) == 0) {  // a copy of a part
        const std::size_t from = rng.Below(text.size()), count = rng.Below(20);
        for (std::size_t i = from; i < std::min(from + count, text.size()); ++i) {
          text.push_back(text[i]);
        }
      } else {
        text.push_back(static_cast<TokenId>(rng.Below(alphabet)) * 1'000'003);
      }
    }
    for (std::size_t length = 1; length <= text.size(); ++length) {
      automaton.Append(text[length - 1]);
      ASSERT_EQ(automaton.Longest(), SlowLongest(std::span(text).first(length)))
          << "after " << length << " tokens";
    }
    ASSERT_TRUE(std::ranges::equal(automaton.text(), text));
  }
}

// Texts with the most states (abbb…) and the most edges (abbb…bc) that there can be.
TEST(SuffixAutomaton, TakesNoMoreMemoryThanItSaid) {
  Rng rng(TestSeed());
  constexpr std::size_t kTokens = 1000;
  for (int kind = 0; kind < 4; ++kind) {
    SuffixAutomaton automaton(kTokens);
    for (std::size_t i = 0; i < kTokens; ++i) {
      const bool first = i == 0, last = i + 1 == kTokens;
      automaton.Append(kind == 0   ? first
                       : kind == 1 ? (first  ? 0
                                      : last ? 2
                                             : 1)
                       : kind == 2 ? static_cast<TokenId>(i)
                                   : static_cast<TokenId>(rng.Below(3)));
    }
    EXPECT_LE(automaton.size(), SuffixAutomaton::BytesFor(kTokens)) << kind;
  }
}

}  // namespace
}  // namespace troupe
