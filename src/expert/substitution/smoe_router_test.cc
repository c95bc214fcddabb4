#include "expert/substitution/smoe_router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expert/substitution/routed_layer_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

struct AnsweredBySmoe {
  std::vector<SlotAnswer> answers;
  SmoeRouter::Counts counts;
};

AnsweredBySmoe Route(const LayerForTest& layer, double alpha) {
  auto router = std::make_unique<SmoeRouter>(SmoeRouter::Options{.alpha = alpha});
  const SmoeRouter& watched = *router;
  std::vector<std::unique_ptr<SubstitutionPolicy>> links;
  links.push_back(std::move(router));
  SubstitutionChain chain(std::move(links));
  const RoutedLayer view = layer.View();
  const auto answers = chain.Answer(view);
  return {{answers.begin(), answers.end()}, watched.count()};
}

// k = 3, boundary 0.10; with alpha 0.3 low scores are at most 0.13, substitutes above 0.07.
const std::vector<float> kSmoeRow = {0.40f, 0.13f, 0.12f, 0.10f, 0.09f, 0.08f, 0.06f, 0.02f};

TEST(SmoeRouterTest, ReplacesLowScoresByTheBestResidentsWithinTheWindow) {
  const auto [answers, counts] = Route(RoutedByScores({kSmoeRow}, 3, {0, 4, 5, 6}), 0.3);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 4, 5));
  EXPECT_EQ(counts.top_score, 1u);
  EXPECT_EQ(counts.low_score, 2u);
  EXPECT_EQ(counts.low_score_missing, 2u);
  EXPECT_EQ(counts.substituted, 2u);
  EXPECT_EQ(counts.none_near, 0u);
}

TEST(SmoeRouterTest, KeepsLowScoresThatAreResident) {
  const auto [answers, counts] = Route(RoutedByScores({kSmoeRow}, 3, {0, 1, 4, 5}), 0.3);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 1, 4));
  EXPECT_EQ(counts.low_score_missing, 1u);
}

TEST(SmoeRouterTest, NeverReplacesATopScore) {
  const auto [answers, counts] = Route(RoutedByScores({kSmoeRow}, 3, {3, 4, 5}), 0.3);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 3, 4));
  EXPECT_EQ(answers[0].kind, AnswerKind::kKeep);
  EXPECT_EQ(counts.substituted, 2u);
}

TEST(SmoeRouterTest, LetsTheBestSlotsWaitWhereSubstitutesAreTooFew) {
  const auto [answers, counts] = Route(RoutedByScores({kSmoeRow}, 3, {0, 5, 6, 7}), 0.3);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 1, 5));
  EXPECT_EQ(counts.substituted, 1u);
  EXPECT_EQ(counts.none_near, 1u);
}

TEST(SmoeRouterTest, AWiderWindowTakesMore) {
  EXPECT_EQ(Route(RoutedByScores({kSmoeRow}, 3, {0, 5, 6, 7}), 0.5).counts.substituted, 2u);
}

TEST(SmoeRouterTest, GivesASubstituteTheWeightOfItsOwnScore) {
  const LayerForTest layer = RoutedByScores({kSmoeRow}, 3, {0, 1, 5});
  const auto answers = Route(layer, 0.3).answers;
  EXPECT_FLOAT_EQ(answers[0].weight, 0.40f);
  EXPECT_FLOAT_EQ(answers[1].weight, 0.13f);
  EXPECT_FLOAT_EQ(answers[2].weight, 0.08f);
}

TEST(SmoeRouterTest, NormalisesWeightsOverTheNewExpertsWhereTheModelDoes) {
  const auto answers =
      Route(RoutedByScores({kSmoeRow}, 3, {0, 1, 5}, /*normalised=*/true), 0.3).answers;
  EXPECT_FLOAT_EQ(answers[0].weight, 0.40f / 0.61f);
  EXPECT_FLOAT_EQ(answers[1].weight, 0.13f / 0.61f);
  EXPECT_FLOAT_EQ(answers[2].weight, 0.08f / 0.61f);
}

// The second token's top score is expert 2, which nobody has: the first token keeps it as a low
// score and the third token, which did not choose it, borrows it.
TEST(SmoeRouterTest, CountsOnOtherTokensTopScores) {
  const LayerForTest layer = RoutedByScores({{0.50f, 0.01f, 0.11f, 0.10f, 0.02f},
                                             {0.30f, 0.01f, 0.60f, 0.10f, 0.02f},
                                             {0.50f, 0.11f, 0.10f, 0.01f, 0.02f}},
                                            2, {0, 3});
  const auto [answers, counts] = Route(layer, 0.3);
  EXPECT_THAT(ExpertsOf(answers), ElementsAre(0, 2, 2, 0, 0, 2));
  EXPECT_EQ(counts.shared, 1u);
  EXPECT_EQ(counts.borrowed, 1u);
  EXPECT_EQ(answers[1].kind, AnswerKind::kKeep);
  EXPECT_EQ(answers[5].kind, AnswerKind::kSubstitute);
}

TEST(SmoeRouterTest, WithAlphaZeroIsExactEvenAmongEqualScores) {
  const auto layer = RoutedByScores({{0.2f, 0.2f, 0.2f, 0.2f, 0.2f}}, 2, {3, 4});
  EXPECT_EQ(Route(layer, 0).answers, AllKept(layer));
}

TEST(SmoeRouterTest, WithoutScoresKeepsEverythingAndSaysSo) {
  LayerForTest layer = RoutedByScores({kSmoeRow}, 3, {4, 5});
  layer.scores.clear();
  const auto [answers, counts] = Route(layer, 0.5);
  EXPECT_EQ(answers, AllKept(layer));
  EXPECT_EQ(counts.unknown, 1u);
}

TEST(SmoeRouterTest, ReplacesNothingWhereEveryExpertIsChosen) {
  const LayerForTest layer = RoutedByScores({{0.5f, 0.3f}}, 2, {0});
  EXPECT_EQ(Route(layer, 1).answers, AllKept(layer));
}

// Algorithm 1 in sets and by the paper's words, one token at a time: which experts may be computed.
std::vector<std::uint32_t> SlowSet(const LayerForTest& layer, std::size_t token, double alpha) {
  const auto row = std::span(layer.scores).subspan(token * layer.experts, layer.experts);
  const auto score = [&](std::uint32_t e) { return double{row[e]}; };
  const auto chosen_by = [&](std::size_t t, std::uint32_t e) {
    for (std::uint32_t s = 0; s < layer.top_k; ++s) {
      if (layer.chosen[t * layer.top_k + s].expert == e) return true;
    }
    return false;
  };
  const auto boundary_of = [&](std::size_t t) {
    double best = -1;
    for (std::uint32_t e = 0; e < layer.experts; ++e) {
      if (!chosen_by(t, e)) best = std::max(best, double{layer.scores[t * layer.experts + e]});
    }
    return best;
  };
  const double boundary = boundary_of(token);
  const auto top_of = [&](std::size_t t, std::uint32_t e) {
    return chosen_by(t, e) &&
           double{layer.scores[t * layer.experts + e]} > (1 + alpha) * boundary_of(t);
  };
  const auto in_c = [&](std::uint32_t e) {
    for (std::size_t t = 0; t < layer.tokens(); ++t) {
      if (top_of(t, e)) return true;
    }
    return false;
  };
  std::vector<std::uint32_t> result, low, substitutes;
  for (std::uint32_t e = 0; e < layer.experts; ++e) {
    const bool there = layer.residence[e] != Residence::kAbsent;  // or about to be
    if (chosen_by(token, e)) {
      if (top_of(token, e) || there || in_c(e)) {
        result.push_back(e);
      } else {
        low.push_back(e);
      }
    } else if (score(e) <= boundary && score(e) > (1 - alpha) * boundary &&
               (layer.Resident(e) || in_c(e))) {
      substitutes.push_back(e);
    }
  }
  const auto best_first = [&](std::uint32_t a, std::uint32_t b) { return score(a) > score(b); };
  std::ranges::stable_sort(low, best_first);
  std::ranges::stable_sort(substitutes, best_first);
  const std::size_t replaced = std::min(low.size(), substitutes.size());
  result.insert(result.end(), substitutes.begin(), substitutes.begin() + std::ptrdiff_t(replaced));
  result.insert(result.end(), low.begin(), low.end() - std::ptrdiff_t(replaced));
  std::ranges::sort(result);
  return result;
}

TEST(SmoeRouterTest, ChoosesTheSameSetsAsTheAlgorithmWrittenPlainly) {
  Rng rng(TestSeed());
  std::uint64_t substituted = 0, borrowed = 0;
  for (int round = 0; round < 4000; ++round) {
    const LayerForTest layer = RandomLayer(rng);
    const double alpha = static_cast<double>(rng.Below(11)) / 10;
    const auto [answers, counts] = Route(layer, alpha);
    substituted += counts.substituted;
    borrowed += counts.borrowed;
    for (std::size_t t = 0; t < layer.tokens(); ++t) {
      auto mine = ExpertsOf(std::span(answers).subspan(t * layer.top_k, layer.top_k));
      std::ranges::sort(mine);
      ASSERT_EQ(mine, SlowSet(layer, t, alpha)) << "round " << round << ", token " << t;
    }
  }
  EXPECT_GT(substituted, 500u);
  EXPECT_GT(borrowed, 20u);
}

}  // namespace
}  // namespace troupe
