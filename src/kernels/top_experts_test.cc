#include "kernels/top_experts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/softmax.h"
#include "kernels/target_testing.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

std::vector<ExpertChoice> Choose(const TopExpertsParams& params, std::vector<float> logits,
                                 const std::vector<float>& bias = {}) {
  std::vector<ExpertChoice> chosen(params.top_k);
  EXPECT_TRUE(CheckTopExpertsParams(params).ok());
  EXPECT_TRUE(ChooseTopExperts(params, logits, bias, chosen));
  return chosen;
}

std::vector<std::uint32_t> Ids(const std::vector<ExpertChoice>& chosen) {
  std::vector<std::uint32_t> ids;
  for (const ExpertChoice& choice : chosen) ids.push_back(choice.expert);
  return ids;
}

// By full sorts, as the models' own papers describe it.
std::vector<std::uint32_t> IdsReference(const TopExpertsParams& params,
                                        const std::vector<float>& keys) {
  const std::uint32_t size = params.experts / params.groups;
  std::vector<float> ranks;
  for (std::uint32_t g = 0; g < params.groups; ++g) {
    std::vector<float> group(keys.begin() + g * size, keys.begin() + (g + 1) * size);
    std::sort(group.rbegin(), group.rend());
    ranks.push_back(params.group_rank == GroupRank::kMax ? group[0] : group[0] + group[1]);
  }
  const auto sorted_places = [](const std::vector<float>& values) {
    std::vector<std::uint32_t> places(values.size());
    std::iota(places.begin(), places.end(), 0u);
    std::stable_sort(places.begin(), places.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return values[a] > values[b]; });
    return places;
  };
  std::vector<std::uint32_t> groups = sorted_places(ranks);
  groups.resize(params.groups_used);
  std::vector<std::uint32_t> ids;
  for (std::uint32_t e : sorted_places(keys)) {
    const bool in_group = std::find(groups.begin(), groups.end(), e / size) != groups.end();
    if (in_group && ids.size() < params.top_k) ids.push_back(e);
  }
  return ids;
}

TEST(ChooseTopExperts, AgreesWithFullSortsForEveryWayToChoose) {
  Rng rng(TestSeed());
  for (int round = 0; round < 300; ++round) {
    TopExpertsParams params{.experts = 64, .top_k = 6, .scale = 2.5f};
    params.score = rng.Below(2) ? GateScore::kSoftmax : GateScore::kSigmoid;
    params.groups = rng.Below(2) ? 8 : 1;
    params.groups_used = params.groups == 8 ? 3 : 1;
    params.group_rank = rng.Below(2) ? GroupRank::kMax : GroupRank::kTopTwo;
    std::vector<float> logits = NormalFloats(rng, 64, 2.0);
    if (rng.Below(2)) {  // ties
      for (float& logit : logits) logit = std::round(logit);
    }
    const std::vector<float> bias = rng.Below(2) ? NormalFloats(rng, 64) : std::vector<float>{};

    std::vector<float> scores = logits;
    params.score == GateScore::kSoftmax ? SoftmaxRow(scores.data(), 64)
                                        : SigmoidRow(scores.data(), 64);
    std::vector<float> keys = scores;
    for (std::size_t e = 0; e < bias.size(); ++e) keys[e] += bias[e];
    const std::vector<std::uint32_t> ids = IdsReference(params, keys);
    ForEachTarget([&] {
      const std::vector<ExpertChoice> chosen = Choose(params, logits, bias);
      ASSERT_EQ(Ids(chosen), ids) << "round " << round;
      for (const ExpertChoice& choice : chosen) {
        ASSERT_EQ(choice.weight, scores[choice.expert] * 2.5f) << "round " << round;
      }
    });
  }
}

TEST(ChooseTopExperts, GivesTiesToTheLowestIndex) {
  const std::vector<float> logits(16, 0.5f);
  const auto chosen = Choose({.experts = 16, .top_k = 3}, logits);
  EXPECT_EQ(Ids(chosen), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(chosen[0].weight, 1.0f / 16);
}

TEST(ChooseTopExperts, BiasDecidesWhoIsChosenAndNotWithWhatWeight) {
  const std::vector<float> logits = {0.0f, 0.0f, 0.0f, 0.0f}, bias = {0.0f, 0.0f, 1.0f, -1.0f};
  const auto chosen =
      Choose({.experts = 4, .top_k = 1, .score = GateScore::kSigmoid}, logits, bias);
  EXPECT_EQ(chosen, (std::vector<ExpertChoice>{{.expert = 2, .weight = 0.5f}}));
}

TEST(ChooseTopExperts, GroupsRankByTheirBestOrByTheirTwoBest) {
  const std::vector<float> logits = {3.0f, -9.0f, 2.0f, 2.0f};  // groups {0, 1} and {2, 3}
  TopExpertsParams params{.experts = 4,
                          .top_k = 1,
                          .score = GateScore::kSigmoid,
                          .groups = 2,
                          .group_rank = GroupRank::kMax};
  EXPECT_EQ(Choose(params, logits)[0].expert, 0u);
  params.group_rank = GroupRank::kTopTwo;
  EXPECT_EQ(Choose(params, logits)[0].expert, 2u);
}

// k quotients whose sum errs by at most k / 2 ulp, their own sum by as much again.
TEST(ChooseTopExperts, NormalisedWeightsSumToTheScale) {
  Rng rng(TestSeed());
  const auto chosen = Choose({.experts = 128, .top_k = 8, .normalise = true, .scale = 1.5f},
                             NormalFloats(rng, 128));
  double sum = 0;
  for (const ExpertChoice& choice : chosen) sum += static_cast<double>(choice.weight);
  EXPECT_NEAR(sum, 1.5, 1.5 * 10 * 0x1p-24);
}

TEST(ChooseTopExperts, NormalisingScoresThatUnderflowedGivesNoInfinity) {
  const std::vector<float> logits(8, -100.0f);
  const auto chosen =
      Choose({.experts = 8, .top_k = 2, .score = GateScore::kSigmoid, .normalise = true}, logits);
  for (const ExpertChoice& choice : chosen) EXPECT_LT(choice.weight, 1e-20f);
}

TEST(ChooseTopExperts, ReturnsTheScoresOfAllExperts) {
  std::vector<float> scores = {1.0f, 2.0f, 3.0f}, expected = scores;
  SoftmaxRow(expected.data(), 3);
  std::vector<ExpertChoice> chosen(1);
  ASSERT_TRUE(ChooseTopExperts({.experts = 3, .top_k = 1}, scores, {}, chosen));
  EXPECT_EQ(scores, expected);
}

TEST(ChooseTopExperts, RefusesNaNInfinityAndTheAbsurdInLogitsAndBias) {
  const TopExpertsParams params{.experts = 20, .top_k = 2};
  std::vector<ExpertChoice> chosen(2);
  for (float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), -1e31f}) {
    std::vector<float> logits(20, 0.0f), bias(20, 0.0f);
    logits[17] = bad;
    EXPECT_FALSE(ChooseTopExperts(params, logits, bias, chosen)) << bad;
    logits.assign(20, 0.0f);
    bias[3] = bad;
    EXPECT_FALSE(ChooseTopExperts(params, logits, bias, chosen)) << bad;
  }
}

TEST(ChooseByScores, ChoosesOfScoresAsOfTheLogitsThatTheyComeFrom) {
  Rng rng(TestSeed());
  const TopExpertsParams params{.experts = 40, .top_k = 5, .normalise = true, .scale = 1.5f};
  std::vector<float> scores = NormalFloats(rng, 40, 2.0);
  const std::vector<float> bias = NormalFloats(rng, 40);
  std::vector<ExpertChoice> of_logits(5), of_scores(5);
  ASSERT_TRUE(ChooseTopExperts(params, scores, bias, of_logits));
  ASSERT_TRUE(ChooseByScores(params, scores, bias, of_scores));
  EXPECT_EQ(of_scores, of_logits);
  scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(ChooseByScores(params, scores, bias, of_scores));
}

TEST(CheckTopExpertsParams, NamesTheNumberThatDoesNotFit) {
  const auto message = [](const TopExpertsParams& params) {
    return CheckTopExpertsParams(params).message();
  };
  EXPECT_THAT(message({.experts = 0, .top_k = 1}), HasSubstr("0 experts"));
  EXPECT_THAT(message({.experts = 5000, .top_k = 1}), HasSubstr("5000 experts"));
  EXPECT_THAT(message({.experts = 8, .top_k = 9}), HasSubstr("9 experts a token, 1 to 8"));
  EXPECT_THAT(message({.experts = 8, .top_k = 0}), HasSubstr("0 experts a token"));
  EXPECT_THAT(message({.experts = 8, .top_k = 1, .groups = 3}), HasSubstr("3 expert groups"));
  EXPECT_THAT(message({.experts = 8, .top_k = 1, .groups = 2, .groups_used = 3}),
              HasSubstr("3 expert groups used, 1 to 2"));
  EXPECT_THAT(message({.experts = 8, .top_k = 5, .groups = 2, .groups_used = 1}),
              HasSubstr("5 experts a token, 1 to 4"));
  EXPECT_THAT(message({.experts = 4, .top_k = 1, .groups = 4, .group_rank = GroupRank::kTopTwo}),
              HasSubstr("groups of 1 expert"));
}

}  // namespace
}  // namespace troupe
