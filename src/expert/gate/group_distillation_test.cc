#include "expert/gate/group_distillation.h"

#include <gtest/gtest.h>

#include "expert/gate/group_agreement.h"
#include "expert/gate/planted_gate_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

const ExpertGroups kThreeGroups = {{0, 3}, {1, 4, 6}, {2, 5}};

GroupGateLayer Learned(const SampleParts& parts, const ExpertGroups& groups,
                       DistilledGate* told = nullptr) {
  DistilledGate gate = DistillGroups(parts.learn, parts.choose, groups);
  if (told != nullptr) *told = gate;
  return {.groups = groups, .weights = std::move(gate.weights), .bias = std::move(gate.bias)};
}

TEST(GroupDistillation, FindsTheGateThatMadeTheScores) {
  Rng rng(TestSeed());
  const PlantedGate planted(1500, 12, kThreeGroups, rng);
  const SampleParts parts = Divide(planted.samples);
  const GateAgreement found = MeasureAgreement(parts.report, Learned(parts, kThreeGroups), 2);
  EXPECT_GT(found.of_nothing, 0.3);
  EXPECT_LT(found.divergence, 0.005);
  // Shares that diverge by d differ by sqrt(d / 2) at most (Pinsker), so 0.05 of the weight is
  // where another group may seem better.
  const GateAgreement truth = MeasureAgreement(parts.report, planted.gate, 2);
  EXPECT_LT(truth.divergence, 1e-6);
  for (std::size_t looked = 0; looked < 3; ++looked) {
    EXPECT_NEAR(found.by_looked[looked].joint, truth.by_looked[looked].joint, 0.05);
    EXPECT_NEAR(found.by_looked[looked].product, truth.by_looked[looked].product, 0.05);
  }
}

TEST(GroupDistillation, NoStepMakesTheLossWorse) {
  Rng rng(TestSeed());
  const PlantedGate planted(200, 12, kThreeGroups, rng);
  const SampleParts parts = Divide(planted.samples);
  DistilledGate told;
  Learned(parts, kThreeGroups, &told);
  ASSERT_GT(told.losses.size(), 5u);
  for (std::size_t i = 1; i < told.losses.size(); ++i) {
    EXPECT_LE(told.losses[i], told.losses[i - 1] + 1e-12) << "step " << i;
  }
  EXPECT_LT(told.losses.back(), told.losses.front());
}

TEST(GroupDistillation, FewerTokensThanColumnsDoNotMakeItWorseThanKnowingNothing) {
  Rng rng(TestSeed());
  const PlantedGate planted(120, 150, kThreeGroups, rng);
  const SampleParts parts = Divide(planted.samples);
  DistilledGate told;
  const GroupGateLayer gate = Learned(parts, kThreeGroups, &told);
  for (const float weight : gate.weights) EXPECT_TRUE(std::isfinite(weight));
  // By what it was chosen by: of the tokens reported on nothing is promised.
  const GateAgreement found = MeasureAgreement(parts.choose, gate, 2);
  GroupGateLayer mean = gate;
  mean.weights.assign(mean.weights.size(), 0);
  mean.bias = DistillGroups(parts.learn, parts.choose, kThreeGroups, {.most_steps = 0}).bias;
  EXPECT_LE(found.divergence, MeasureAgreement(parts.choose, mean, 2).divergence + 1e-6);
}

TEST(GroupDistillation, AColumnThatNeverChangesGetsNoWeight) {
  Rng rng(TestSeed());
  const PlantedGate planted(100, 4, kThreeGroups, rng);
  std::vector<float> inputs(planted.samples.inputs.begin(), planted.samples.inputs.end());
  for (std::size_t i = 2; i < inputs.size(); i += 4) inputs[i] = 7;
  GateSamples samples = planted.samples;
  samples.inputs = inputs;
  const SampleParts parts = Divide(samples);
  const GroupGateLayer gate = Learned(parts, kThreeGroups);
  for (std::size_t g = 0; g < 3; ++g) EXPECT_EQ(gate.weights[g * 4 + 2], 0);
}

TEST(GroupDistillation, PartsHaveEveryTokenOnceInOrder) {
  Rng rng(TestSeed());
  for (const std::size_t tokens : {kLeastSamples, std::size_t{57}}) {
    const PlantedGate planted(tokens, 3, kThreeGroups, rng);
    const SampleParts parts = Divide(planted.samples);
    EXPECT_GT(parts.choose.tokens(), 0u);
    EXPECT_GT(parts.report.tokens(), 0u);
    EXPECT_EQ(parts.learn.tokens() + parts.choose.tokens() + parts.report.tokens(), tokens);
    EXPECT_EQ(parts.learn.Input(0).data(), planted.samples.inputs.data());
    EXPECT_EQ(parts.choose.Scores(0).data(), planted.samples.Scores(parts.learn.tokens()).data());
    EXPECT_EQ(parts.report.Input(0).data(),
              planted.samples.Input(parts.learn.tokens() + parts.choose.tokens()).data());
  }
}

}  // namespace
}  // namespace troupe
