#include "runtime/loader_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

// A drive of 2 GB/s that answers after 100 us, by the sizes that a probe reads.
CostModel Measured() {
  CostModel costs;
  costs.memory_bytes_per_second.Note(20e9);
  for (const Bytes size : {4_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB}) {
    ReadCost read;
    read.request = size;
    const double bytes = static_cast<double>(size.count());
    read.lone_seconds.Note(100e-6 + bytes / 2e9);
    read.bytes_per_second.Note(2e9 * bytes / (bytes + 8192));
    costs.disk.reads.push_back(read);
  }
  return costs;
}

bool SameReads(const LoaderOptions& a, const LoaderOptions& b) {
  return a.piece == b.piece && a.prefetch_piece == b.prefetch_piece &&
         a.prefetch_reads == b.prefetch_reads;
}

TEST(LoaderChoiceTest, ReadsAsAlwaysWhereNothingWasMeasured) {
  const LoaderChoice choice = ChooseLoader(3_MiB, {}, {});
  EXPECT_TRUE(SameReads(choice.options, LoaderOptions()));
  EXPECT_THAT(choice.reason, HasSubstr("nothing was measured"));
}

TEST(LoaderChoiceTest, ReadsByWhatWasMeasuredAndSaysWhy) {
  const LoaderChoice choice = ChooseLoader(3_MiB, Measured(), {});
  EXPECT_FALSE(SameReads(choice.options, LoaderOptions()));
  // Enough for the latency, and two loads of an expert at most.
  EXPECT_GE(choice.options.prefetch_reads * choice.options.prefetch_piece, 200_KiB);
  EXPECT_LE(choice.options.prefetch_reads * choice.options.prefetch_piece, 6_MiB);
  EXPECT_THAT(choice.reason, HasSubstr(" % of a medium of 1.9 GiB/s and 102 us"));
}

TEST(LoaderChoiceTest, ALinkCountsBeforeTheDiskAndWithoutOne) {
  const LinkSpeed far{.bytes_per_second = 1e9, .latency_seconds = 5e-3};
  const LoaderChoice behind = ChooseLoader(3_MiB, Measured(), far);
  const LoaderChoice alone = ChooseLoader(3_MiB, {}, far);
  for (const LoaderChoice& choice : {behind, alone}) {
    EXPECT_GE(choice.options.prefetch_reads * choice.options.prefetch_piece, 4_MiB);
  }
  // Its latency alone says nothing of how fast a disk passes bytes.
  EXPECT_TRUE(
      SameReads(ChooseLoader(3_MiB, {}, {.latency_seconds = 5e-3}).options, LoaderOptions()));
}

TEST(LoaderChoiceTest, RunsChangeWhatIsKnownButNotThePlan) {
  CostModel costs = Measured();
  costs.NoteExpert("Q4_K", 1e-3, 1e-4);
  const LoaderChoice before = ChooseLoader(3_MiB, costs, {});
  costs.disk.NoteRun(1_GiB, 1024, 4);
  costs.NoteExpert("Q4_K", 5e-3, 1e-4);
  const LoaderChoice after = ChooseLoader(3_MiB, costs, {});
  EXPECT_TRUE(SameReads(before.options, after.options));
  EXPECT_EQ(before.reason, after.reason);
}

TEST(LoaderChoiceTest, StagingHoldsSomeExpertsAndTwoAtLeast) {
  EXPECT_EQ(ChooseLoader(100_KiB, {}, {}).options.staging, 8u);
  EXPECT_EQ(ChooseLoader(4_MiB, {}, {}).options.staging, 4u);
  EXPECT_EQ(ChooseLoader(100_MiB, {}, {}).options.staging, 2u);
  EXPECT_TRUE(ChooseLoader(Bytes(), {}, {}).reason.empty());  // a model without experts
}

}  // namespace
}  // namespace troupe
