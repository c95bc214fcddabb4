#include "expert/flow/speed_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

RunningMean MeanOf(double value) { return {.value = value, .samples = 1}; }

constexpr double kMiB = 1048576;

// An expert of 1 MiB takes 1 ms, and 0.1 ms a further row; it comes in one piece at 100 MiB/s.
CostModel Costs() {
  CostModel costs{.memory_bytes_per_second = MeanOf(1000 * kMiB)};
  costs.NoteExpert("expert", 1e-3, 1e-4);
  costs.disk.reads = {
      {.request = 4_KiB, .lone_seconds = MeanOf(1e-4), .bytes_per_second = MeanOf(100 * kMiB)},
      {.request = 1_MiB, .lone_seconds = MeanOf(1.01e-2), .bytes_per_second = MeanOf(100 * kMiB)}};
  return costs;
}

// 10 layers of 8 experts, of which a token uses 2, and 20 MiB beside them.
ModelWork Work() {
  return {.dense = 16_MiB,
          .head = 4_MiB,
          .experts = {{.layers = 10, .shape = "expert", .bytes = 1_MiB, .load = {.bytes = 1_MiB}}},
          .experts_per_layer = 8,
          .experts_per_token = 2,
          .like = "expert",
          .like_bytes = 1_MiB};
}

MemoryNeeds SpeedNeeds() {
  return {.expert_layers = 10, .experts_per_layer = 8, .experts_per_token = 2};
}

TEST(SpeedEstimateTest, WithEverythingInMemoryATokenIsItsWeights) {
  const PassEstimate pass = EstimatePass(Work(), Costs(), 1, 1.0).value();
  EXPECT_DOUBLE_EQ(pass.compute_seconds, 20e-3 + 20e-3);  // 20 experts, 20 MiB like experts
  EXPECT_EQ(pass.disk_seconds, 0);
  EXPECT_EQ(pass.bytes_read, 0);
  EXPECT_DOUBLE_EQ(pass.Seconds(), pass.compute_seconds);
}

TEST(SpeedEstimateTest, AMissWaitsForWhatTheLayersOtherExpertsDoNotCover) {
  const PassEstimate pass = EstimatePass(Work(), Costs(), 1, 0.5).value();
  EXPECT_DOUBLE_EQ(pass.experts_read, 10);
  EXPECT_DOUBLE_EQ(pass.bytes_read, 10 * kMiB);
  EXPECT_DOUBLE_EQ(pass.disk_seconds, 10 * 1.01e-2);
  EXPECT_DOUBLE_EQ(pass.wait_seconds, 10 * (1.01e-2 - 1e-3));  // the other one runs meanwhile
}

TEST(SpeedEstimateTest, AFastDiskHidesBehindComputing) {
  CostModel costs = Costs();
  costs.disk = {};
  costs.disk.reads = {
      {.request = 1_MiB, .lone_seconds = MeanOf(1e-4), .bytes_per_second = MeanOf(10'000 * kMiB)}};
  const PassEstimate pass = EstimatePass(Work(), costs, 1, 0.5).value();
  EXPECT_GT(pass.disk_seconds, 0);
  EXPECT_EQ(pass.wait_seconds, 0);
}

TEST(SpeedEstimateTest, AChunkReadsEachExpertOnceHoweverManyTokensChooseIt) {
  const PassEstimate pass = EstimatePass(Work(), Costs(), 512, 0).value();
  EXPECT_NEAR(pass.experts_read, 80, 1e-6);
  // 80 first rows, and 512 x 2 - 8 further ones a layer; dense weights for 512 rows, the head
  // for 1.
  const double experts = 80e-3 + 10 * (1024 - 8) * 1e-4;
  const double dense = 16 * (1e-3 + 511 * 1e-4) + 4e-3;
  EXPECT_NEAR(pass.compute_seconds, experts + dense, 1e-6);
}

TEST(SpeedEstimateTest, FewTokensDoNotChooseEveryExpert) {
  const PassEstimate pass = EstimatePass(Work(), Costs(), 2, 0).value();
  EXPECT_NEAR(pass.experts_read, 10 * 8 * (1 - 0.75 * 0.75), 1e-9);
}

TEST(SpeedEstimateTest, TheHitRateIsTheShareOfExpertsThatFit) {
  MemoryPlan plan{.slots = 20};
  EXPECT_DOUBLE_EQ(UniformHitRate(plan, SpeedNeeds()), 0.25);
  plan.all_resident = true;
  EXPECT_DOUBLE_EQ(UniformHitRate(plan, SpeedNeeds()), 1);
  EXPECT_DOUBLE_EQ(UniformHitRate(MemoryPlan(), MemoryNeeds()), 1);
}

TEST(SpeedEstimateTest, APromptBeginsWithAnEmptyCacheAndGoesInChunks) {
  const MemoryPlan plan{.chunk = 200, .slots = 40};
  const SpeedEstimate speed = EstimateSpeed(Work(), plan, SpeedNeeds(), Costs(), 500).value();
  EXPECT_DOUBLE_EQ(speed.hit_rate, 0.5);
  PassEstimate chunks = EstimatePass(Work(), Costs(), 200, 0).value();
  chunks += EstimatePass(Work(), Costs(), 200, 0.5).value();
  chunks += EstimatePass(Work(), Costs(), 100, 0.5).value();
  EXPECT_DOUBLE_EQ(speed.prefill.Seconds(), chunks.Seconds());
  EXPECT_DOUBLE_EQ(speed.PrefillTokensPerSecond(), 500 / chunks.Seconds());
}

TEST(SpeedEstimateTest, LiesBetweenNoOverlapAndFullOverlap) {
  const MemoryPlan plan{.chunk = 512, .slots = 40};
  const SpeedEstimate speed = EstimateSpeed(Work(), plan, SpeedNeeds(), Costs(), 512).value();
  EXPECT_LT(speed.SlowestDecode(), speed.DecodeTokensPerSecond());
  EXPECT_LT(speed.DecodeTokensPerSecond(), speed.FastestDecode());
}

TEST(SpeedEstimateTest, NeverGrowsSlowerWithMoreSlots) {
  double before = 0;
  for (std::uint32_t slots = 2; slots <= 80; ++slots) {
    const MemoryPlan plan{.chunk = 64, .slots = slots};
    const SpeedEstimate speed = EstimateSpeed(Work(), plan, SpeedNeeds(), Costs(), 512).value();
    EXPECT_GE(speed.DecodeTokensPerSecond(), before) << slots;
    before = speed.DecodeTokensPerSecond();
  }
}

TEST(SpeedEstimateTest, ADiskNobodyMeasuredIsNeededOnlyByMisses) {
  CostModel costs = Costs();
  costs.disk = {};
  EXPECT_TRUE(EstimatePass(Work(), costs, 1, 1.0).ok());
  EXPECT_THAT(EstimatePass(Work(), costs, 1, 0.5).status().message(), HasSubstr("disk"));
}

TEST(SpeedEstimateTest, AModelWithoutExpertsIsItsDenseWeights) {
  const ModelWork work{.dense = 10_MiB, .like = "ffn", .like_bytes = 2_MiB};
  CostModel costs;
  EXPECT_THAT(EstimatePass(work, costs, 1, 1).status().message(), HasSubstr("memory"));
  costs.memory_bytes_per_second.Note(1000 * kMiB);
  EXPECT_DOUBLE_EQ(EstimatePass(work, costs, 1, 1)->Seconds(), 10e-3);
  costs.NoteExpert("ffn", 4e-3, 1e-3);
  EXPECT_DOUBLE_EQ(EstimatePass(work, costs, 1, 1)->Seconds(), 20e-3);
  EXPECT_DOUBLE_EQ(EstimatePass(work, costs, 3, 1)->Seconds(), 30e-3);
}

}  // namespace
}  // namespace troupe
