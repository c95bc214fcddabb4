#include "machine/machine_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

class MachineMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Write("/proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:    8192 kB\nSwapFree: 1 kB\n");
  }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  MachineMemory Read() { return ReadMachineMemory(folder_.path().string()).value(); }

  TempFolder folder_;
};

TEST_F(MachineMemoryTest, WithoutGroupsTheMachineSetsTheLimit) {
  EXPECT_EQ(Read().available, 8_MiB);
  EXPECT_EQ(Read().limit, "the machine");
  EXPECT_EQ(Read().whole, Bytes(9000 * 1024));
}

TEST_F(MachineMemoryTest, AGroupOfTheSecondVersionLeavesItsLimitLessWhatItHolds) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "6291456\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "3145728\n");
  Write("/sys/fs/cgroup/a/b/memory.stat", "anon 5\ninactive_file 1048576\nactive_file 0\n");
  EXPECT_EQ(Read().available, 4_MiB);  // 6 - (3 - 1)
  EXPECT_EQ(Read().limit, "/sys/fs/cgroup/a/b");
  EXPECT_EQ(Read().whole, 6_MiB);
}

TEST_F(MachineMemoryTest, AParentsTighterLimitCounts) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/b/memory.current", "1048576\n");
  Write("/sys/fs/cgroup/a/memory.max", "3145728\n");
  Write("/sys/fs/cgroup/a/memory.current", "1048576\n");
  EXPECT_EQ(Read().available, 2_MiB);
  EXPECT_EQ(Read().limit, "/sys/fs/cgroup/a");
}

TEST_F(MachineMemoryTest, WhereAGroupIsSlowedDownIsALimitToo) {
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "max\n");
  Write("/sys/fs/cgroup/a/memory.high", "3145728\n");
  Write("/sys/fs/cgroup/a/memory.current", "1048576\n");
  EXPECT_EQ(Read().available, 2_MiB);
}

TEST_F(MachineMemoryTest, AGroupOfTheFirstVersionIsReadToo) {
  Write("/proc/self/cgroup", "5:cpu:/x\n4:memory,hugetlb:/jobs\n");
  Write("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5242880\n");
  Write("/sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "4194304\n");
  Write("/sys/fs/cgroup/memory/jobs/memory.stat",
        "cache 9\ntotal_inactive_file 1048576\ntotal_active_file 1048576\n");
  EXPECT_EQ(Read().available, 3_MiB);
  EXPECT_EQ(Read().limit, "/sys/fs/cgroup/memory/jobs");
  EXPECT_EQ(Read().whole, 5_MiB);
}

TEST_F(MachineMemoryTest, InAContainerTheMountItselfIsTheGroup) {
  Write("/proc/self/cgroup", "4:memory:/host/path/of/it\n");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
  Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
  EXPECT_EQ(Read().available, 1_MiB);
}

TEST_F(MachineMemoryTest, AGroupThatHoldsMoreThanItsLimitLeavesNothing) {
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/memory.max", "1048576\n");
  Write("/sys/fs/cgroup/a/memory.current", "4194304\n");
  EXPECT_EQ(Read().available, Bytes());
  EXPECT_EQ(DefaultBudget(Read()), Bytes());
}

TEST_F(MachineMemoryTest, ASystemThatDoesNotTellIsAnErrorThatNamesTheOption) {
  Write("/proc/meminfo", "MemTotal: 9000 kB\n");
  EXPECT_THAT(ReadMachineMemory(folder_.path().string()).status().message(),
              testing::HasSubstr("--memory"));
}

TEST(DefaultBudgetTest, LeavesASixteenthAtLeastAQuarterOfAGibibyte) {
  EXPECT_EQ(DefaultBudget({.available = 16_GiB, .limit = ""}), 15_GiB);
  EXPECT_EQ(DefaultBudget({.available = 2_GiB, .limit = ""}), 2_GiB - 256_MiB);
  EXPECT_EQ(DefaultBudget({.available = 1_GiB, .limit = ""}), 768_MiB);
}

TEST(DefaultBudgetTest, TakesThreeQuartersOfASmallContainer) {
  EXPECT_EQ(DefaultBudget({.available = 300_MiB, .limit = ""}), 225_MiB);
  EXPECT_EQ(DefaultBudget({.available = 256_MiB, .limit = ""}), 192_MiB);
  EXPECT_EQ(DefaultBudget({.available = Bytes(), .limit = ""}), Bytes());
}

TEST(MachineMemory, OfThisMachineIsMoreThanNothing) {
  EXPECT_GT(ReadMachineMemory()->available, 1_MiB);
}

}  // namespace
}  // namespace troupe
