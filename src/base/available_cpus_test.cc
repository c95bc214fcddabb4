#include "base/available_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe {
namespace {

class AvailableCpusTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("cpus_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_.string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  std::size_t Cpus() const { return AvailableCpus(root_.string()); }

  std::filesystem::path root_;
};

TEST_F(AvailableCpusTest, WithoutAQuotaAllThatTheProcessMayRunOn) {
  cpu_set_t set;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
  EXPECT_EQ(Cpus(), static_cast<std::size_t>(CPU_COUNT(&set)));
  Write("/proc/self/cgroup", "0::/a\n");
  Write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(Cpus(), static_cast<std::size_t>(CPU_COUNT(&set)));
}

TEST_F(AvailableCpusTest, AQuotaOfTheSecondVersionCounts) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");  // the parent's, one and a half
  EXPECT_EQ(Cpus(), 1u);
}

TEST_F(AvailableCpusTest, AQuotaOfTheFirstVersionCounts) {
  Write("/proc/self/cgroup", "3:cpu,cpuacct:/x\n");
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Cpus(), 1u);
  Write("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Cpus(), AvailableCpus("/nowhere"));
}

TEST_F(AvailableCpusTest, LessThanOneProcessorIsOne) {
  Write("/proc/self/cgroup", "0::/\n");
  Write("/sys/fs/cgroup/cpu.max", "20000 100000\n");
  EXPECT_EQ(Cpus(), 1u);
}

}  // namespace
}  // namespace troupe
