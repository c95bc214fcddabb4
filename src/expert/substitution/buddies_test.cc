#include "expert/substitution/buddies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/bytes.h"
#include "expert/substitution/routed_layer_for_test.h"
#include "expert/substitution/token_entropy.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

// All gates open.
Buddies::Options Open() { return {.gates = {.tau = -1, .beta = 2}, .rho = kNoLimit}; }

std::shared_ptr<BuddyLists> NoLists(std::uint32_t experts) {
  auto lists = std::make_shared<BuddyLists>();
  lists->grid = {.layers = 1, .experts = experts};
  lists->lists.resize(experts);
  return lists;
}

struct AnsweredByBuddies {
  std::vector<SlotAnswer> answers;
  Buddies::Counts counts;
  SubstitutionGates::Counts gates;
};

AnsweredByBuddies Replace(const LayerForTest& layer, std::shared_ptr<const BuddyLists> lists,
                          const Buddies::Options& options) {
  auto policy = std::make_unique<Buddies>(std::move(lists), options);
  const Buddies& watched = *policy;
  std::vector<std::unique_ptr<SubstitutionPolicy>> links;
  links.push_back(std::move(policy));
  SubstitutionChain chain(std::move(links));
  const RoutedLayer view = layer.View();
  const auto answers = chain.Answer(view);
  return {{answers.begin(), answers.end()}, watched.count(), watched.gates().count()};
}

// A token that chooses 0, 1, 2 of six experts, in this order.
LayerForTest ThreeOfSix(std::vector<std::uint32_t> resident) {
  return RoutedByScores({{0.3f, 0.25f, 0.2f, 0.1f, 0.08f, 0.07f}}, 3, std::move(resident));
}

std::shared_ptr<BuddyLists> ListsOfThree() {
  auto lists = NoLists(6);
  lists->lists[0] = {{1, 0.5f}, {3, 0.3f}, {4, 0.2f}};
  lists->lists[1] = {{3, 0.6f}, {4, 0.4f}};
  lists->lists[2] = {{3, 0.9f}, {5, 0.1f}};
  return lists;
}

TEST(BuddiesTest, WalksSlotsAndListsAsAlgorithm1Prints) {
  Buddies::Options options = Open();
  options.best_first = true;
  // 0 skips 1, which is the token's already, and takes 3; 1 finds 3 taken and takes 4; 2 takes 5.
  const auto [answers, counts, gates] = Replace(ThreeOfSix({3, 4, 5}), ListsOfThree(), options);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(3, 4, 5));
  EXPECT_EQ(counts.substituted, 3u);
}

TEST(BuddiesTest, OrFromTheLeastSlotUp) {
  const auto [answers, counts, gates] = Replace(ThreeOfSix({3, 4, 5}), ListsOfThree(), Open());
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 4, 3));
  EXPECT_EQ(counts.substituted, 2u);
  EXPECT_EQ(counts.none_resident, 1u);
}

TEST(BuddiesTest, ABuddyTakesOverTheSlotsWeight) {
  const auto answers = Replace(ThreeOfSix({0, 1, 3}), ListsOfThree(), Open()).answers;
  EXPECT_EQ(answers[2], (SlotAnswer{3, 0.2f, AnswerKind::kSubstitute}));
  EXPECT_EQ(answers[0], (SlotAnswer{0, 0.3f, AnswerKind::kKeep}));
}

TEST(BuddiesTest, LooksNoFurtherDownAListThanTheRank) {
  Buddies::Options options = Open();
  options.rank = 1;
  const auto [answers, counts, gates] = Replace(ThreeOfSix({0, 1, 5}), ListsOfThree(), options);
  EXPECT_EQ(answers[2].expert, 2u);
  EXPECT_EQ(counts.none_resident, 1u);
}

TEST(BuddiesTest, SpendsRhoOnTheLeastSlots) {
  Buddies::Options options = Open();
  options.rho = 1;
  const auto [answers, counts, gates] = Replace(ThreeOfSix({3, 4, 5}), ListsOfThree(), options);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 1, 3));
  EXPECT_EQ(counts.rho_closed, 2u);
}

TEST(BuddiesTest, TakesTauOfTheLayer) {
  auto lists = std::make_shared<BuddyLists>();
  lists->grid = {.layers = 2, .experts = 6};
  const auto layer_lists = ListsOfThree()->lists;
  for (int i = 0; i < 2; ++i) {
    lists->lists.insert(lists->lists.end(), layer_lists.begin(), layer_lists.end());
  }
  LayerForTest layer = ThreeOfSix({3, 4, 5});
  Buddies::Options options = Open();
  options.gates.tau_by_layer = {0, 1};
  EXPECT_EQ(Replace(layer, lists, options).gates.tau_closed, 0u);
  layer.layer = 1;
  EXPECT_EQ(Replace(layer, lists, options).gates.tau_closed, 1u);
}

TEST(BuddiesTest, LeavesTokensAloneThatLeanOnFewExperts) {
  LayerForTest layer = RoutedByScores(
      {{0.9f, 0.05f, 0.04f, 0.01f, 0, 0}, {0.31f, 0.30f, 0.29f, 0.1f, 0, 0}}, 3, {3});
  Buddies::Options options = Open();
  options.gates.tau = 0.7;
  const AnsweredByBuddies answered = Replace(layer, ListsOfThree(), options);
  EXPECT_THAT(ExpertsOf(answered.answers), ElementsAre(0, 1, 2, 0, 1, 3));
  EXPECT_EQ(answered.gates.tau_closed, 1u);
}

TEST(BuddiesTest, LeavesTokensAloneWhoseFirstExpertLeadsByGamma) {
  Buddies::Options options = Open();
  options.gates.gamma = 0.06;  // shares 0.4, 0.333, 0.267
  EXPECT_EQ(Replace(ThreeOfSix({3, 4, 5}), ListsOfThree(), options).gates.gamma_closed, 1u);
  options.gates.gamma = 0.07;
  EXPECT_EQ(Replace(ThreeOfSix({3, 4, 5}), ListsOfThree(), options).gates.gamma_closed, 0u);
}

TEST(BuddiesTest, LeavesPassesAloneThatMissTooMuch) {
  Buddies::Options options = Open();
  options.gates.beta = 2.0 / 3;
  EXPECT_EQ(Replace(ThreeOfSix({0, 3}), ListsOfThree(), options).gates.beta_closed, 1u);
  EXPECT_EQ(Replace(ThreeOfSix({0, 1, 3}), ListsOfThree(), options).gates.beta_closed, 0u);
}

TEST(BuddiesTest, ABudgetOfTransfersStandsInPlaceOfBeta) {
  const LayerForTest layer = ThreeOfSix({3, 4, 5});  // misses all three that it asks for
  Buddies::Options options = Open();
  options.gates.beta = 0.1;
  for (const std::uint32_t budget : {2u, 3u}) {
    options.gates.budget = budget;  // misses up to this number are loaded
    const AnsweredByBuddies answered = Replace(layer, ListsOfThree(), options);
    EXPECT_EQ(answered.counts.substituted, 0u);
    EXPECT_EQ(answered.gates.beta_closed, 1u);
  }
  options.gates.budget = 4;
  EXPECT_GT(Replace(layer, ListsOfThree(), options).counts.substituted, 0u);
}

TEST(BuddiesTest, PrefersWhatTheTokenItselfScoresHighByEta) {
  auto lists = NoLists(6);
  lists->lists[2] = {{5, 0.5f}, {3, 0.4f}};  // scores 0.07 and 0.1, of at most 0.3
  Buddies::Options options = Open();
  EXPECT_EQ(Replace(ThreeOfSix({0, 1, 3, 5}), lists, options).answers[2].expert, 5u);
  options.eta = 10;  // 0.5 x 3.33 against 0.4 x 4.33
  EXPECT_EQ(Replace(ThreeOfSix({0, 1, 3, 5}), lists, options).answers[2].expert, 3u);
}

TEST(BuddiesTest, CountsExpertsWithoutBuddies) {
  EXPECT_EQ(Replace(ThreeOfSix({3}), NoLists(6), Open()).counts.no_list, 3u);
}

TEST(BuddiesTest, ClosedGatesAreExact) {
  const LayerForTest layer = ThreeOfSix({3, 4, 5});
  for (const auto& close : std::vector<std::function<void(Buddies::Options&)>>{
           [](Buddies::Options& o) { o.gates.tau = 1; },
           [](Buddies::Options& o) { o.gates.gamma = 0; },
           [](Buddies::Options& o) { o.gates.beta = 0; }, [](Buddies::Options& o) { o.rho = 0; },
           [](Buddies::Options& o) { o.rank = 0; }}) {
    Buddies::Options options = Open();
    ASSERT_NE(Replace(layer, ListsOfThree(), options).answers, AllKept(layer));
    close(options);
    EXPECT_EQ(Replace(layer, ListsOfThree(), options).answers, AllKept(layer));
  }
}

// Algorithm 1 in the paper's own variables.
std::vector<std::uint32_t> SlowAlgorithm1(const LayerForTest& layer, const BuddyLists& lists,
                                          std::uint32_t rank) {
  std::vector<std::uint32_t> s;
  for (const ExpertChoice& slot : layer.chosen) s.push_back(slot.expert);
  for (std::size_t t = 0; t < layer.tokens(); ++t) {
    std::vector<bool> used(layer.experts);
    for (std::uint32_t k = 0; k < layer.top_k; ++k) used[s[t * layer.top_k + k]] = true;
    for (std::uint32_t k = 0; k < layer.top_k; ++k) {
      std::uint32_t& e = s[t * layer.top_k + k];
      if (layer.residence[e] != Residence::kAbsent) continue;
      const std::vector<Buddy>& list = lists.lists[e];
      for (std::uint32_t r = 0; r < rank && r < list.size(); ++r) {
        const std::uint32_t b = list[r].expert;
        if (!layer.Resident(b) || used[b]) continue;
        e = b;
        used[b] = true;
        break;
      }
    }
  }
  return s;
}

TEST(BuddiesTest, WithGatesOpenChoosesWhatAlgorithm1Chooses) {
  Rng rng(TestSeed());
  std::uint64_t substituted = 0;
  for (int round = 0; round < 3000; ++round) {
    const LayerForTest layer = RandomLayer(rng);
    Coactivations counts({.layers = 1, .experts = layer.experts});
    for (int token = 0; token < 12; ++token) {
      std::vector<std::uint32_t> order(layer.experts);
      std::iota(order.begin(), order.end(), 0u);
      std::shuffle(order.begin(), order.end(), rng);
      order.resize(layer.top_k);
      counts.Add(0, order);
    }
    const auto lists = std::make_shared<BuddyLists>(MakeBuddyLists(counts));
    Buddies::Options options = Open();
    options.best_first = true;
    options.rank = static_cast<std::uint32_t>(rng.Below(6));
    const auto answered = Replace(layer, lists, options);
    substituted += answered.counts.substituted;
    ASSERT_EQ(ExpertsOf(answered.answers), SlowAlgorithm1(layer, *lists, options.rank))
        << "round " << round;
  }
  EXPECT_GT(substituted, 500u);
}

TEST(TokenEntropyTest, IsOneForEqualWeightsAndZeroForASingleOne) {
  const std::vector<ExpertChoice> even = {{0, 0.2f}, {1, 0.2f}, {2, 0.2f}, {3, 0.2f}};
  EXPECT_NEAR(EvennessOf(even).entropy, 1, 1e-12);
  EXPECT_NEAR(EvennessOf(even).margin, 0, 1e-12);
  const std::vector<ExpertChoice> single = {{0, 0.9f}, {1, 0.0f}};
  EXPECT_EQ(EvennessOf(single).entropy, 0);
  EXPECT_EQ(EvennessOf(std::span(even).first(1)).entropy, 0);
}

TEST(TokenEntropyTest, IsTheEntropyOfTheSharesInTheBaseOfTheirNumber) {
  const std::vector<ExpertChoice> slots = {{0, 0.4f}, {1, 0.1f}};  // 0.8, 0.2: 0.7219 bits
  EXPECT_NEAR(EvennessOf(slots).entropy, 0.721928, 1e-5);
  EXPECT_NEAR(EvennessOf(slots).margin, 0.6, 1e-6);
}

TEST(TokenEntropyTest, ATemperatureTakesTheRootOfTheShares) {
  const std::vector<ExpertChoice> slots = {{0, 0.64f}, {1, 0.04f}};  // roots 0.8 and 0.2
  EXPECT_NEAR(EvennessOf(slots, 2).entropy, 0.721928, 1e-5);
}

TEST(EntropyHistogramTest, FindsTheThresholdThatAShareOfTheTokensLiesBelow) {
  EntropyHistogram histogram;
  for (int i = 0; i < 100; ++i) histogram.Add(i / 100.0);
  EXPECT_NEAR(histogram.Percentile(0.1), 0.1, 0.002);
  EXPECT_NEAR(histogram.Percentile(0.5), 0.5, 0.002);
  EXPECT_EQ(histogram.Percentile(0), 0);
  EXPECT_EQ(histogram.Percentile(1), 1);
  EXPECT_EQ(histogram.tokens(), 100u);
}

}  // namespace
}  // namespace troupe
