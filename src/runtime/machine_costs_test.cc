#include "runtime/machine_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/model_work.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ExpertLayout Layout(std::size_t ff) {
  ExpertLayout layout;
  layout.matrices = {
      {{.rows = ff, .cols = 32}, {.rows = ff, .cols = 32}, {.rows = 32, .cols = ff}}};
  return layout.In({TensorType::kQ8_0, TensorType::kQ8_0, TensorType::kQ4_0});
}

class MachineCostsTest : public testing::Test {
 protected:
  CostModelFile File() const {
    return CostModelFile::Load({.cpu = "test", .cpus = 1, .kernels = "any"},
                               folder_.PathOf("cache"));
  }
  MachineCosts Ask(CostQuestion question) const {
    question.seconds_for_experts = 0;
    CostModelFile file = File();
    return AskCosts(question, file).value();
  }

  TempFolder folder_;
  const std::string disk_ = folder_.Write("model", std::string(100 << 10, 'x'));
  const CostQuestion question_{.threads = 1, .shapes = {Layout(32)}, .disk_file = disk_};
};

TEST_F(MachineCostsTest, RememberingMeasuresNothing) {
  EXPECT_EQ(RememberedCosts(1, disk_, File()), CostModel());
  const CostModel measured = Ask(question_).model;
  EXPECT_EQ(RememberedCosts(1, disk_, File()), measured);
  EXPECT_EQ(RememberedCosts(1, folder_.PathOf("none"), File()), CostModel());
  const CostModel without_disk = RememberedCosts(1, /*disk_file=*/"", File());
  EXPECT_EQ(without_disk.experts, measured.experts);
  EXPECT_EQ(without_disk.memory_bytes_per_second, measured.memory_bytes_per_second);
  EXPECT_FALSE(without_disk.disk.measured());
  const CostModel other_threads = RememberedCosts(2, disk_, File());
  EXPECT_EQ(other_threads.disk, measured.disk);
  EXPECT_FALSE(other_threads.memory_bytes_per_second.measured());
}

TEST_F(MachineCostsTest, MeasuresTheFirstTimeAndRemembersTheSecond) {
  const MachineCosts first = Ask(question_), second = Ask(question_);
  EXPECT_TRUE(first.memory_measured);
  EXPECT_TRUE(first.disk_measured);
  EXPECT_THAT(first.shapes_measured, ElementsAre("Q8_0 32x32, Q8_0 32x32, Q4_0 32x32"));
  EXPECT_FALSE(second.AnyMeasured());
  EXPECT_EQ(second.model, first.model);
  EXPECT_TRUE(second.model.disk.measured());
}

TEST_F(MachineCostsTest, MeasuresOnlyWhatIsMissing) {
  Ask({.threads = 1});
  const MachineCosts disk = Ask({.threads = 1, .disk_file = disk_});
  EXPECT_FALSE(disk.memory_measured);
  EXPECT_TRUE(disk.disk_measured);
  const MachineCosts other_threads = Ask({.threads = 2, .disk_file = disk_});
  EXPECT_TRUE(other_threads.memory_measured);
  EXPECT_FALSE(other_threads.disk_measured);
  Ask(question_);
  const MachineCosts shapes =
      Ask({.threads = 1, .shapes = {Layout(32), Layout(64)}, .disk_file = disk_});
  EXPECT_THAT(shapes.shapes_measured, ElementsAre(ShapeKey(Layout(64))));
  EXPECT_NE(shapes.model.Find(ShapeKey(Layout(32))), nullptr);
}

TEST_F(MachineCostsTest, WithoutAQuestionAboutTheDiskItIsLeftAlone) {
  const MachineCosts costs = Ask({.threads = 1, .shapes = {Layout(32)}});
  EXPECT_FALSE(costs.disk_measured);
  EXPECT_FALSE(costs.model.disk.measured());
}

TEST_F(MachineCostsTest, FreshForgetsWhatWasMeasuredAndSeen) {
  MachineCosts costs = Ask(question_);
  for (int i = 0; i < 3; ++i)
    UpdateFromRun(costs.model, {.seen = {.reads = 100, .bytes = 1 << 28, .seconds = 1}});
  CostModelFile file = File();
  file.Put(1, costs.device, costs.model);
  file.Save();
  CostQuestion fresh = question_;
  fresh.fresh = true;
  const MachineCosts again = Ask(fresh);
  EXPECT_TRUE(again.memory_measured && again.disk_measured);
  EXPECT_THAT(again.shapes_measured, ElementsAre(ShapeKey(Layout(32))));
  EXPECT_EQ(again.model.memory_bytes_per_second.samples, 1u);
  EXPECT_EQ(again.model.experts.size(), 1u);
  for (const ReadCost& read : again.model.disk.reads) EXPECT_FALSE(read.in_runs.measured());
}

TEST_F(MachineCostsTest, WhatWasMeasuredInLittleMemoryIsNotRemembered) {
  CostQuestion small = question_;
  small.memory = 2_MiB;
  const MachineCosts first = Ask(small);
  EXPECT_TRUE(first.memory_measured && first.disk_measured);
  EXPECT_FALSE(first.saved);
  EXPECT_EQ(RememberedCosts(1, disk_, File()), CostModel());
  EXPECT_TRUE(Ask(small).memory_measured);
  EXPECT_TRUE(Ask(question_).saved);
}

TEST_F(MachineCostsTest, AFileThatIsMissingIsAnError) {
  CostModelFile file = File();
  EXPECT_EQ(AskCosts({.disk_file = folder_.PathOf("none")}, file).status().code(), Code::kNotFound);
}

TEST_F(MachineCostsTest, ARunsLinkSpeedIsItsBytesOverTheTimeInWhichItRead) {
  CostModel model = Ask(question_).model;
  const Bytes largest = model.disk.reads.back().request;
  UpdateFromRun(model, {.seen = {.reads = 1000, .bytes = 1000 * largest.count(), .seconds = 2}});
  EXPECT_DOUBLE_EQ(model.disk.BytesPerSecond(largest),
                   500.0 * static_cast<double>(largest.count()));
}

// Tokens that compute for `seconds` each besides waiting, and touch as many bytes as an expert of
// Layout(32) has.
TokensSeen Computing(double seconds) {
  return {.tokens = 100,
          .seconds = 100 * seconds + 5,
          .stall_seconds = 5,
          .touched = Bytes(Layout(32).SlotBytes())};
}

TEST_F(MachineCostsTest, TokensTellWhatAnExpertTakes) {
  CostModel model = Ask({.threads = 1, .shapes = {Layout(32)}}).model;
  const double before = model.experts[0].first_row.value;
  const double further = model.experts[0].further_row.value;
  ASSERT_GT(before, 0);
  const ExpertLayouts layouts = {Layout(32), Layout(96), Layout(32)};
  for (int i = 0; i < 400; ++i) UpdateFromTokens(model, layouts, Computing(2 * before));
  EXPECT_NEAR(model.experts[0].first_row.value, 2 * before, 1e-6 * before);
  EXPECT_EQ(model.experts[0].further_row.value, further);
  EXPECT_EQ(model.experts.size(), 1u);  // the other shape was never measured
}

TEST_F(MachineCostsTest, ARunThatWasStoppedForAWhileTellsNothing) {
  const CostModel model = Ask({.threads = 1, .shapes = {Layout(32)}}).model;
  CostModel after = model;
  const double before = model.experts[0].first_row.value;
  UpdateFromTokens(after, {Layout(32)}, Computing(100 * before));
  UpdateFromTokens(after, {Layout(32)}, Computing(before / 100));
  EXPECT_EQ(after, model);
}

TEST_F(MachineCostsTest, FewTokensAndTokensThatOnlyWaitedTellNothing) {
  const CostModel model = Ask({.threads = 1, .shapes = {Layout(32)}}).model;
  const TokensSeen nothing[] = {
      {},
      {.tokens = 15, .seconds = 1, .stall_seconds = 0, .touched = Bytes(1000)},
      {.tokens = 100, .seconds = 1, .stall_seconds = 1, .touched = Bytes(1000)},
      {.tokens = 100, .seconds = 1, .stall_seconds = 0, .touched = Bytes()}};
  for (const TokensSeen& seen : nothing) {
    CostModel after = model;
    UpdateFromTokens(after, {Layout(32)}, seen);
    EXPECT_EQ(after, model);
  }
}

}  // namespace
}  // namespace troupe
