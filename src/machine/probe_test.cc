#include "machine/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// A second passes whenever somebody looks.
class TickingClock final : public Clock {
 public:
  Nanos Now() const override { return ++seconds_ * 1'000'000'000; }

 private:
  mutable Nanos seconds_ = 0;
};

ExpertLayout Layout(TensorType type, std::size_t ff, std::size_t width) {
  ExpertLayout layout;
  layout.matrices = {{{.type = type, .rows = ff, .cols = width},
                      {.type = type, .rows = ff, .cols = width},
                      {.type = type, .rows = width, .cols = ff}}};
  return layout.In({type, type, type});
}

TEST(ProbeTest, MayTakeWhatTheBudgetLeavesOfThisProcess) {
  EXPECT_EQ(ProbeMemoryWithin(1_MiB), 1_MiB);
  EXPECT_EQ(ProbeMemoryWithin(Bytes(std::uint64_t{1} << 40)), kProbeMemory);
}

TEST(ProbeTest, AnExpertsTimeIsItsShareOfARound) {
  ThreadPool pool(2);
  const ExpertSeconds seconds =
      ProbeExpert(Layout(TensorType::kQ8_0, 64, 96), pool, TickingClock(), 0).value();
  EXPECT_DOUBLE_EQ(seconds.first_row, 0.25);  // a round is four experts and takes a second
  EXPECT_GT(seconds.further_row, 0);          // although no round took longer than another
  EXPECT_LT(seconds.further_row, 0.001);
}

TEST(ProbeTest, ComputesExpertsOfAnyTypeAndOfWidthsWithoutAnEightBitForm) {
  ThreadPool pool(1);
  for (const TensorTypeInfo& info : AllTensorTypes()) {
    const ExpertLayout layout = Layout(info.type, 256, 512);
    EXPECT_TRUE(ProbeExpert(layout, pool, TickingClock(), 0).ok()) << info.name;
  }
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16}) {
    EXPECT_TRUE(ProbeExpert(Layout(type, 17, 9), pool, TickingClock(), 0).ok()) << Name(type);
  }
}

TEST(ProbeTest, FindsThatRealRoundsTakeTime) {
  ThreadPool pool(1);
  const MonotonicClock clock;
  const ExpertSeconds seconds =
      ProbeExpert(Layout(TensorType::kQ4_0, 128, 128), pool, clock, 0.01).value();
  EXPECT_GT(seconds.first_row, 0);
  EXPECT_GT(seconds.further_row, 0);
}

TEST(ProbeTest, MemoryHasASpeed) {
  ThreadPool pool(1);
  EXPECT_GT(ProbeMemory(pool).value(), 0);
}

TEST(ProbeTest, ADisksTableRisesToTheSizesThatTheFileHolds) {
  const TempFolder folder;
  const DirectFile file =
      DirectFile::Open(folder.Write("data", std::string(300 << 10, 'x'))).value();
  const DiskCost cost = ProbeDiskCost({}, file, MonotonicClock()).value();
  ASSERT_EQ(cost.reads.size(), 3u);
  EXPECT_EQ(cost.reads[0].request, 4_KiB);
  EXPECT_EQ(cost.reads[2].request, 256_KiB);
  EXPECT_EQ(cost.direct, file.direct());
  for (const ReadCost& read : cost.reads) {
    EXPECT_TRUE(read.lone_seconds.measured());
    EXPECT_TRUE(read.bytes_per_second.measured());
    EXPECT_FALSE(read.in_runs.measured());
  }
}

TEST(ProbeTest, AFileTooSmallToMeasureByIsAnError) {
  const TempFolder folder;
  const DirectFile file = DirectFile::Open(folder.Write("data", "x")).value();
  EXPECT_THAT(ProbeDiskCost({}, file, MonotonicClock()).status().message(), HasSubstr("data"));
}

}  // namespace
}  // namespace troupe
