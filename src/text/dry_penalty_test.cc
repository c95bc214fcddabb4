#include "text/dry_penalty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using Text = std::vector<TokenId>;

TokenSet Breakers(std::initializer_list<TokenId> ids) {
  TokenSet set(100);
  for (const TokenId id : ids) set.Insert(id);
  return set;
}

std::map<TokenId, float> After(const Text& text, const DryOptions& options,
                               const TokenSet& breakers = Breakers({})) {
  DryPenalty dry(options, breakers);
  for (const TokenId token : text) dry.Accept(token);
  const auto penalties = dry.Penalties();
  return {penalties.begin(), penalties.end()};
}

TEST(DryPenaltyTest, TheTokenThatGoesOnWithARepetitionIsLessLikelyTheLongerItIs) {
  const DryOptions options{.multiplier = 0.8, .base = 2, .allowed_length = 2};
  EXPECT_THAT(After({1, 2, 3, 4, 1, 2}, options), ElementsAre(Pair(3, 0.8f)));
  EXPECT_THAT(After({1, 2, 3, 4, 5, 1, 2, 3}, options), ElementsAre(Pair(4, 1.6f)));
  EXPECT_THAT(After({1, 2, 3, 4, 2}, options), IsEmpty());  // one token alone is allowed
}

TEST(DryPenaltyTest, OfSeveralPlacesTheLongestRepetitionCounts) {
  const DryOptions options{.multiplier = 1, .base = 2, .allowed_length = 1};
  EXPECT_THAT(After({9, 1, 2, 3, 7, 2, 4, 9, 1, 2}, options),
              ElementsAre(Pair(3, 4.0f), Pair(4, 1.0f)));
}

TEST(DryPenaltyTest, ABreakerEndsARepetitionAndIsNeverPenalised) {
  const DryOptions options{.multiplier = 1, .base = 2, .allowed_length = 1};
  EXPECT_THAT(After({1, 50, 2, 3, 9, 1, 50, 2}, options, Breakers({50})),
              ElementsAre(Pair(3, 1.0f)));
  EXPECT_THAT(After({1, 50, 2, 1, 50}, options, Breakers({50})), IsEmpty());
  EXPECT_THAT(After({1, 50, 2, 1}, options, Breakers({50})), IsEmpty());
}

TEST(DryPenaltyTest, OnlyTheWindowIsLookedAt) {
  const Text text = {1, 2, 3, 4, 5, 6, 1, 2};
  EXPECT_THAT(After(text, {.multiplier = 1, .window = 7}), IsEmpty());
  EXPECT_THAT(After(text, {.multiplier = 1, .window = 8}), ElementsAre(Pair(3, 1.0f)));
}

TEST(DryPenaltyTest, ALongRepetitionIsAsGoodAsBannedAndStaysANumber) {
  Text text;
  for (int i = 0; i < 5000; ++i) text.push_back(i % 7);
  const auto penalties = After(text, {.multiplier = 1e3, .base = 4});
  for (const auto& [token, penalty] : penalties) EXPECT_TRUE(std::isfinite(penalty)) << token;
  EXPECT_GT(penalties.at(5000 % 7), 1e29f);
}

// The definition, place by place.
std::map<TokenId, std::size_t> Slow(const Text& text, std::size_t allowed,
                                    const TokenSet& breakers) {
  std::map<TokenId, std::size_t> longest;
  for (std::size_t next = 1; next < text.size(); ++next) {
    std::size_t repeated = 0;
    while (repeated < next && text[next - 1 - repeated] == text[text.size() - 1 - repeated] &&
           !breakers.Has(text[text.size() - 1 - repeated])) {
      ++repeated;
    }
    if (repeated < allowed || breakers.Has(text[next])) continue;
    longest[text[next]] = std::max(longest[text[next]], repeated);
  }
  return longest;
}

TEST(DryPenaltyTest, AgreesWithItsDefinitionOnRandomTexts) {
  Rng rng(TestSeed());
  const TokenSet breakers = Breakers({0});
  for (int round = 0; round < 2000; ++round) {
    Text text(1 + rng.Below(60));
    for (TokenId& token : text) token = static_cast<TokenId>(rng.Below(4));
    const auto allowed = static_cast<std::uint32_t>(1 + rng.Below(3));
    std::map<TokenId, float> expected;
    for (const auto& [token, repeated] : Slow(text, allowed, breakers)) {
      expected[token] = std::ldexp(1.0f, static_cast<int>(repeated - allowed));
    }
    EXPECT_EQ(After(text, {.multiplier = 1, .base = 2, .allowed_length = allowed}, breakers),
              expected);
  }
}

}  // namespace
}  // namespace troupe
