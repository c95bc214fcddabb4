// The controls and the plain answers: cache-biased ranking, best live score, random residents,
// dropping, fewer experts a token, copies of fewer bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "expert/substitution/cache_bias.h"
#include "expert/substitution/drop_slots.h"
#include "expert/substitution/low_bit_copy.h"
#include "expert/substitution/resident_substitute.h"
#include "expert/substitution/routed_layer_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

const std::vector<float> kControlRow = {0.40f, 0.20f, 0.12f, 0.10f, 0.08f, 0.06f, 0.03f, 0.01f};

struct AnsweredByControl {
  std::vector<SlotAnswer> answers;
  std::map<std::string_view, std::uint64_t> counts;
};

template <typename Policy>
AnsweredByControl Give(const LayerForTest& layer, typename Policy::Options options) {
  SubstitutionChain chain = ChainOf<Policy>(options);
  const RoutedLayer view = layer.View();
  const auto answers = chain.Answer(view);
  AnsweredByControl given{{answers.begin(), answers.end()}, {}};
  for (const NamedCount& count : chain.links()[0]->counts()) given.counts[count.name] = count.count;
  return given;
}

TEST(DropMissingTest, LosesTheWeightOrSharesIt) {
  const LayerForTest layer = RoutedByScores({kControlRow}, 3, {0, 1});
  const auto lost = Give<DropMissing>(layer, {});
  EXPECT_THAT(lost.answers, ElementsAre(SlotAnswer{0, 0.40f}, SlotAnswer{1, 0.20f},
                                        SlotAnswer{2, 0, AnswerKind::kDrop}));
  EXPECT_EQ(lost.counts.at("dropped"), 1u);
  const auto shared = Give<DropMissing>(layer, {.weight = DroppedWeight::kShared}).answers;
  EXPECT_FLOAT_EQ(shared[0].weight, 0.48f);
  EXPECT_FLOAT_EQ(shared[1].weight, 0.24f);
  EXPECT_EQ(shared[2].weight, 0);
}

TEST(DropMissingTest, LosesAllWhereNothingIsThere) {
  const auto shared =
      Give<DropMissing>(RoutedByScores({kControlRow}, 3, {}), {.weight = DroppedWeight::kShared})
          .answers;
  for (const SlotAnswer& answer : shared) EXPECT_EQ(answer.weight, 0);
}

TEST(DropMissingTest, KeepsHeavySlotsAndSpendsRhoOnTheLightest) {
  const LayerForTest layer = RoutedByScores({kControlRow}, 3, {});
  const auto light = Give<DropMissing>(layer, {.most_share = 0.3});
  EXPECT_EQ(light.answers[0].kind, AnswerKind::kKeep);
  EXPECT_EQ(light.answers[1].kind, AnswerKind::kDrop);
  EXPECT_EQ(light.counts.at("too_heavy"), 1u);
  const auto one = Give<DropMissing>(layer, {.rho = 1});
  EXPECT_EQ(one.answers[1].kind, AnswerKind::kKeep);
  EXPECT_EQ(one.answers[2].kind, AnswerKind::kDrop);
  EXPECT_EQ(one.counts.at("rho_closed"), 2u);
}

TEST(SmallerTopKTest, DropsTheLastSlotsWhereverTheirExpertsAre) {
  const auto given = Give<SmallerTopK>(RoutedByScores({kControlRow}, 3, {1, 2}), {.keep = 1});
  EXPECT_EQ(given.answers[0], (SlotAnswer{0, 0.40f}));
  EXPECT_EQ(given.answers[1].kind, AnswerKind::kDrop);
  EXPECT_EQ(given.answers[2].kind, AnswerKind::kDrop);
  EXPECT_EQ(given.counts.at("dropped"), 2u);
  EXPECT_EQ(given.counts.at("dropped_resident"), 2u);
}

TEST(SmallerTopKTest, NormalisesAnewWhereTheModelDoes) {
  const auto answers =
      Give<SmallerTopK>(RoutedByScores({kControlRow}, 3, {}, /*normalised=*/true), {.keep = 2})
          .answers;
  EXPECT_FLOAT_EQ(answers[0].weight, 0.4f / 0.6f);
  EXPECT_FLOAT_EQ(answers[1].weight, 0.2f / 0.6f);
}

TEST(BestLiveScoreTest, TakesTheBestResidentHoweverLowItsScore) {
  const auto given = Give<BestLiveScore>(RoutedByScores({kControlRow}, 3, {1, 5, 6}), {});
  EXPECT_THAT(ExpertsOf(given.answers), ElementsAre(6, 1, 5));
  EXPECT_FLOAT_EQ(given.answers[2].weight, 0.06f);
  EXPECT_EQ(given.counts.at("substituted"), 2u);
}

TEST(BestLiveScoreTest, CountsSlotsWithoutAnyResidentLeftOrScoresKnown) {
  EXPECT_EQ(
      Give<BestLiveScore>(RoutedByScores({kControlRow}, 3, {5}), {}).counts.at("none_resident"),
      2u);
  LayerForTest layer = RoutedByScores({kControlRow}, 3, {5});
  layer.scores.clear();
  EXPECT_EQ(Give<BestLiveScore>(layer, {}).counts.at("unknown"), 3u);
}

TEST(BestLiveScoreTest, AnswersNoMoreOfATokenThanRho) {
  const auto one = Give<BestLiveScore>(RoutedByScores({kControlRow}, 3, {5, 6, 7}), {.rho = 1});
  EXPECT_THAT(ExpertsOf(one.answers), ElementsAre(0, 1, 5));
  EXPECT_EQ(one.counts.at("rho_closed"), 2u);
}

// So that a control runs at any rate. Of 0.72 the slots weigh 0.56, 0.28 and 0.17.
TEST(ControlsTest, LeaveSlotsAloneThatAreTooHeavy) {
  const LayerForTest layer = RoutedByScores({kControlRow}, 3, {5, 6, 7});
  const auto best = Give<BestLiveScore>(layer, {.most_share = 0.3});
  EXPECT_THAT(ExpertsOf(best.answers), ElementsAre(0, 6, 5));
  EXPECT_EQ(best.counts.at("too_heavy"), 1u);
  EXPECT_EQ(best.counts.at("substituted"), 2u);
  const auto drawn = Give<RandomResident>(layer, {.most_share = 0.2});
  EXPECT_EQ(drawn.answers[1], (SlotAnswer{1, 0.20f}));
  EXPECT_EQ(drawn.answers[2].kind, AnswerKind::kSubstitute);
  EXPECT_EQ(drawn.counts.at("too_heavy"), 2u);
  const auto fewer = Give<SmallerTopK>(layer, {.keep = 1, .most_share = 0.2});
  EXPECT_EQ(fewer.answers[1].kind, AnswerKind::kKeep);
  EXPECT_EQ(fewer.answers[2].kind, AnswerKind::kDrop);
  EXPECT_EQ(fewer.counts.at("too_heavy"), 1u);
  EXPECT_EQ(fewer.counts.at("dropped"), 1u);
}

TEST(RandomResidentTest, DrawsEveryResidentExpertAboutAsOften) {
  SubstitutionChain chain = ChainOf<RandomResident>(RandomResident::Options{});
  const LayerForTest layer = RoutedByScores({kControlRow}, 1, {3, 4, 5, 6});
  const RoutedLayer view = layer.View();
  std::map<std::uint32_t, int> drawn;
  for (int i = 0; i < 4000; ++i) ++drawn[chain.Answer(view)[0].expert];
  for (std::uint32_t e = 3; e <= 6; ++e) EXPECT_NEAR(drawn[e], 1000, 150) << e;
  EXPECT_EQ(drawn.size(), 4u);
}

TEST(RandomResidentTest, GivesTheSlotsWeightAndTheSameDrawForTheSameSeed) {
  const LayerForTest layer = RoutedByScores({kControlRow}, 2, {0, 4, 5, 6, 7});
  const auto first = Give<RandomResident>(layer, {.seed = 7}).answers;
  EXPECT_EQ(first, Give<RandomResident>(layer, {.seed = 7}).answers);
  EXPECT_FLOAT_EQ(first[1].weight, 0.20f);
}

TEST(RandomResidentTest, CountsSlotsForWhichNoResidentIsLeft) {
  const auto given = Give<RandomResident>(RoutedByScores({kControlRow}, 3, {7}), {});
  EXPECT_EQ(given.counts.at("none_resident"), 2u);
  EXPECT_EQ(given.counts.at("substituted"), 1u);
}

TEST(RandomResidentTest, AnswersNoMoreOfATokenThanRhoAndNeedsNoScores) {
  LayerForTest layer = RoutedByScores({kControlRow}, 3, {5, 6, 7});
  layer.scores.clear();
  const auto one = Give<RandomResident>(layer, {.rho = 1});
  EXPECT_EQ(one.counts.at("rho_closed"), 2u);
  EXPECT_EQ(one.counts.at("substituted"), 1u);
  EXPECT_FALSE(one.counts.contains("unknown"));
}

// Range 0.39: a bonus of 0.1 is 0.039, of 0.2 it is 0.078.
TEST(CacheBiasTest, ReplacesWhatTheBonusTurnsRound) {
  const LayerForTest layer = RoutedByScores({kControlRow}, 3, {0, 3, 4});
  const auto small = Give<CacheBias>(layer, {.bonus = 0.1});
  EXPECT_THAT(ExpertsOf(small.answers), ElementsAre(0, 1, 3));  // 0.10 + 0.039 > 0.12, < 0.20
  EXPECT_EQ(small.counts.at("substituted"), 1u);
  EXPECT_EQ(small.counts.at("out_of_reach"), 1u);
  const auto large = Give<CacheBias>(layer, {.bonus = 0.35});
  EXPECT_THAT(ExpertsOf(large.answers), ElementsAre(0, 4, 3));  // 0.08 + 0.1365 > 0.20
  EXPECT_EQ(Give<CacheBias>(layer, {.bonus = 0.35, .rho = 1}).counts.at("rho_closed"), 1u);
}

TEST(CacheBiasTest, CountsTokensWhoseScoresAreNotKnown) {
  LayerForTest layer = RoutedByScores({kControlRow, kControlRow}, 3, {0, 3, 4});
  layer.scores.clear();
  const auto given = Give<CacheBias>(layer, {.bonus = 1});
  EXPECT_EQ(given.counts.at("unknown"), 2u);
  EXPECT_EQ(given.counts.at("substituted"), 0u);
}

TEST(CacheBiasTest, ChoosesTheSetThatRankingWithTheBonusChooses) {
  Rng rng(TestSeed());
  std::uint64_t changed = 0;
  for (int round = 0; round < 2000; ++round) {
    LayerForTest layer = RandomLayer(rng);
    for (Residence& residence : layer.residence) {
      if (residence == Residence::kLoading) residence = Residence::kAbsent;
    }
    // Different scores, so that there is one ranking.
    for (float& score : layer.scores) score = static_cast<float>(rng.Uniform());
    std::vector<std::vector<float>> rows;
    for (std::size_t t = 0; t < layer.tokens(); ++t) {
      rows.emplace_back(layer.scores.begin() + std::ptrdiff_t(t * layer.experts),
                        layer.scores.begin() + std::ptrdiff_t((t + 1) * layer.experts));
    }
    LayerForTest routed = RoutedByScores(rows, layer.top_k, {});
    routed.residence = layer.residence;
    const double bonus = rng.Uniform();
    const auto answers = Give<CacheBias>(routed, {.bonus = bonus}).answers;
    for (std::size_t t = 0; t < routed.tokens(); ++t) {
      const auto [least, most] = std::ranges::minmax(rows[t]);
      std::vector<std::pair<double, std::uint32_t>> ranked;
      for (std::uint32_t e = 0; e < routed.experts; ++e) {
        const double raised = routed.Resident(e) ? bonus * (double{most} - least) : 0;
        ranked.emplace_back(-(rows[t][e] + raised), e);
      }
      std::ranges::sort(ranked);
      std::vector<std::uint32_t> expected;
      for (std::uint32_t i = 0; i < routed.top_k; ++i) expected.push_back(ranked[i].second);
      auto mine = ExpertsOf(std::span(answers).subspan(t * routed.top_k, routed.top_k));
      std::ranges::sort(expected);
      std::ranges::sort(mine);
      ASSERT_EQ(mine, expected) << "round " << round;
      for (std::uint32_t i = 0; i < routed.top_k; ++i) {
        changed += answers[t * routed.top_k + i].kind == AnswerKind::kSubstitute ? 1 : 0;
      }
    }
  }
  EXPECT_GT(changed, 300u);
}

TEST(LowBitCopyTest, TakesTheCopyOfLightMissingSlots) {
  LayerForTest layer = RoutedByScores({kControlRow}, 3, {});
  layer.low_bit = {1, 1, 0, 0, 0, 0, 0, 0};
  const auto given = Give<LowBitCopy>(layer, {.most_share = 0.3});
  EXPECT_THAT(given.answers,
              ElementsAre(SlotAnswer{0, 0.40f}, SlotAnswer{1, 0.20f, AnswerKind::kLowBit},
                          SlotAnswer{2, 0.12f}));
  EXPECT_EQ(given.counts.at("taken"), 1u);
  EXPECT_EQ(given.counts.at("too_heavy"), 1u);
  EXPECT_EQ(given.counts.at("no_copy"), 1u);
  layer.low_bit.clear();
  EXPECT_EQ(Give<LowBitCopy>(layer, {}).counts.at("no_copy"), 3u);
}

}  // namespace
}  // namespace troupe
