#include "lab/buddy_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace troupe {
namespace {

using testing::DoubleEq;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::IsEmpty;

// Layer 0 has no experts.
ModelConfig TwoLayers() {
  ModelConfig config;
  config.layers = 2;
  config.moe.leading_dense = 1;
  config.moe.routing = {.experts = 4, .top_k = 2};
  return config;
}

void Pass(BuddyRecorder& recorder, std::size_t position, std::vector<ExpertChoice> chosen) {
  recorder.PassBegins(OneGroup(1, Phase::kPrompt, static_cast<std::uint32_t>(chosen.size() / 2),
                               static_cast<std::uint32_t>(position)));
  recorder.Routed(1, chosen, {});
  recorder.PassEnded();
}

// Two tokens choose 0 and 1, one of them evenly; one chooses 0 and 2, nearly all on 0.
BuddyRecorder ThreeTokens(const WarmUp& warm_up) {
  BuddyRecorder recorder(TwoLayers(), warm_up);
  Pass(recorder, 0, {{0, 0.5f}, {1, 0.5f}, {1, 0.6f}, {0, 0.2f}});
  Pass(recorder, 2, {{0, 0.75f}, {2, 0.25f}});
  return recorder;
}

std::vector<Buddy> ListOf(const BuddyProfile& profile, std::uint32_t expert) {
  const auto list = profile.buddies.Of({1, expert});
  return {list.begin(), list.end()};
}

TEST(BuddyRecorderTest, CountsWhoIsChosenWithWhomAsWorkedOutByHand) {
  const BuddyProfile profile = ThreeTokens({.tokens = 0}).Profile({.coverage = 1});
  EXPECT_EQ(profile.tokens, 3u);
  EXPECT_EQ(profile.top_k, 2u);
  ASSERT_EQ(profile.layers.size(), 1u);
  EXPECT_EQ(profile.layers[0].layer, 1u);
  EXPECT_THAT(profile.layers[0].activations, ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(ListOf(profile, 0), ElementsAre(Buddy{1, 2.0f / 3}, Buddy{2, 1.0f / 3}));
  EXPECT_THAT(ListOf(profile, 1), ElementsAre(Buddy{0, 1}));
  EXPECT_THAT(ListOf(profile, 2), ElementsAre(Buddy{0, 1}));
  EXPECT_THAT(ListOf(profile, 3), IsEmpty());
  EXPECT_THAT(profile.buddies.Of({0, 0}), IsEmpty());
}

TEST(BuddyRecorderTest, WeighsMeetingsByTheSmallerShareWhereAsked) {
  // 0 with 1: 1/2 + 1/4; 0 with 2: 1/4. So 3 of 4 parts, where plain counts have 2 of 3.
  const BuddyProfile profile =
      ThreeTokens({.tokens = 0}).Profile({.coverage = 1, .weighted = true});
  EXPECT_THAT(ListOf(profile, 0), ElementsAre(Buddy{1, 0.75f}, Buddy{2, 0.25f}));
}

TEST(BuddyRecorderTest, TheFirstTokensOfAWindowCountForLess) {
  // Positions 0, 1, 2 of a warm-up of two tokens from 1/2 on: 1/2, 3/4, 1.
  const BuddyProfile profile = ThreeTokens({.tokens = 2, .least = 0.5}).Profile({.coverage = 1});
  EXPECT_THAT(profile.layers[0].activations,
              ElementsAre(DoubleEq(2.25), DoubleEq(1.25), DoubleEq(1), DoubleEq(0)));
  EXPECT_FLOAT_EQ(ListOf(profile, 0)[0].share, 1.25f / 2.25f);
}

TEST(BuddyRecorderTest, KeepsThePercentilesOfTheTokensEntropy) {
  // Shares 1/4 and 3/4 for two tokens, 1/2 and 1/2 for one.
  const BuddyProfile profile = ThreeTokens({}).Profile({});
  const double uneven = -(0.25 * std::log2(0.25) + 0.75 * std::log2(0.75));
  constexpr double kStep = 1.0 / 1024;
  const std::vector<double>& entropy = profile.layers[0].entropy;
  ASSERT_EQ(entropy.size(), 21u);
  EXPECT_THAT(entropy.front(), DoubleNear(uneven, kStep));
  EXPECT_THAT(entropy[13], DoubleNear(uneven, kStep));  // 65 % of three tokens: less than two
  EXPECT_EQ(entropy[14], 1);
  // A layer without experts lets no token change.
  EXPECT_THAT(profile.EntropyAt(15), ElementsAre(1, DoubleNear(uneven, kStep)));
}

TEST(BuddyRecorderTest, DoesNotDependOnHowTokensAreCutIntoPasses) {
  BuddyRecorder one(TwoLayers()), many(TwoLayers());
  Pass(one, 3, {{0, 0.5f}, {1, 0.25f}, {2, 0.5f}, {1, 0.25f}});
  Pass(many, 3, {{0, 0.5f}, {1, 0.25f}});
  Pass(many, 4, {{2, 0.5f}, {1, 0.25f}});
  EXPECT_EQ(one.Profile({}), many.Profile({}));
}

}  // namespace
}  // namespace troupe
