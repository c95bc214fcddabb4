#include "split/device_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr Nanos kSecond = 1'000'000'000;

class DeviceWatchTest : public testing::Test {
 protected:
  void SetUp() override { Write("/proc/meminfo", "MemAvailable:    8192 kB\n"); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  // Ticks of which that many were idle, since the last one.
  void Pass(std::uint64_t ticks, std::uint64_t idle) {
    busy_ += ticks - idle;
    idle_ += idle;
    Write("/proc/stat", fmt::format("cpu  {} 0 0 {} 0 0 0 0\n", busy_, idle_));
  }
  DeviceWatch Watch() {
    return DeviceWatch({.cpus = 4,
                        .for_experts = 1_GiB,
                        .needs = {.experts = 100, .bytes = 1_MiB, .seconds = 0.01, .a_token = 10},
                        .root = folder_.path().string()});
  }

  TempFolder folder_;
  std::uint64_t busy_ = 0, idle_ = 0;
};

TEST_F(DeviceWatchTest, TheFirstLookCountsOnAllProcessorsAndTheSecondOnTheFreeOnes) {
  DeviceWatch watch = Watch();
  Pass(1000, 500);
  const DeviceReport first = watch.Look(0).value();
  EXPECT_EQ(first.free_processors, std::nullopt);
  EXPECT_EQ(first.capability.token_seconds, 0.1);
  Pass(1000, 250);
  const DeviceReport second = watch.Look(kSecond).value();
  EXPECT_EQ(second.free_processors, 1.0);
  EXPECT_EQ(second.share.processors, 0.25);
  EXPECT_DOUBLE_EQ(second.capability.token_seconds, 0.4);
  EXPECT_EQ(second.capability.experts, 40u);
}

TEST_F(DeviceWatchTest, AMomentChangesNothingAndWhatLastsDoes) {
  DeviceWatch watch = Watch();
  Pass(1000, 1000);
  (void)watch.Look(0).value();
  std::vector<std::uint32_t> experts;
  for (int look = 1; look <= 12; ++look) {
    Pass(1000, look < 3 || look == 4 ? 1000 : 20);
    experts.push_back(watch.Look(look * 3 * kSecond)->capability.experts);
  }
  EXPECT_THAT(experts, testing::ElementsAre(40, 40, 40, 40, 40, 40, 40, 40, 40, 20, 20, 20));
}

TEST_F(DeviceWatchTest, AnEmptyBatteryLeavesLessToRun) {
  Write("/sys/class/power_supply/BAT0/type", "Battery\n");
  Write("/sys/class/power_supply/BAT0/capacity", "5\n");
  Write("/sys/class/power_supply/BAT0/status", "Discharging\n");
  DeviceWatch watch = Watch();
  const DeviceReport report = watch.Look(0).value();
  EXPECT_EQ(report.share.power, 0.1);
  EXPECT_EQ(report.capability.limit, "speed");
  EXPECT_EQ(report.capability.experts, 20u);
  EXPECT_EQ(DescribePower(report.state), "battery 5 %, discharging");
}

TEST_F(DeviceWatchTest, ACapThatWasThereAsSpeedsWereMeasuredIsNotCountedOnceMore) {
  const auto cap = [this](int watts) {
    const std::string zone = "/sys/class/powercap/intel-rapl:0";
    Write(zone + "/constraint_0_name", "long_term\n");
    Write(zone + "/constraint_0_power_limit_uw", fmt::format("{}000000\n", watts));
    Write(zone + "/constraint_0_max_power_uw", "60000000\n");
  };
  cap(15);
  DeviceWatch watch = Watch();
  const DeviceReport first = watch.Look(0).value();
  ASSERT_TRUE(first.state.power_cap_watts);
  EXPECT_EQ(first.share.power, 1);
  EXPECT_EQ(first.capability.token_seconds, 0.1);
  cap(6);
  for (const Nanos now : {kSecond, 20 * kSecond}) {
    const DeviceReport later = watch.Look(now).value();
    EXPECT_EQ(later.battery_power, 1) << "what passes take holds the cap of the moment";
    EXPECT_DOUBLE_EQ(later.share.power, now == kSecond ? 1 : 0.4) << "as it lasts";
  }
}

TEST_F(DeviceWatchTest, TwoLooksFindTheLoadThatWasThereFromTheBeginning) {
  Pass(1000, 500);
  DeviceWatch watch = Watch();
  ManualClock clock;
  const DeviceReport report = LookTwice(watch, clock, [&] {
                                Pass(1000, 20);
                                clock.Advance(kSecond);
                                return OkStatus();
                              }).value();
  EXPECT_EQ(report.share.processors, 0.1);
  EXPECT_EQ(report.capability.experts, 20u);
}

TEST(DescribePower, TellsACapAndOfWhatItIsOne) {
  EXPECT_EQ(DescribePower({}), "on the mains");
  EXPECT_EQ(DescribePower({.power_cap_watts = 15, .power_most_watts = 60}),
            "on the mains; cap 15 W of 60 W");
}

TEST(MemoryForExperts, IsWhatTheOthersLeaveOfTheBudget) {
  EXPECT_EQ(MemoryForExperts({.budget = 10_MiB, .dense = 4_MiB, .experts = 3_MiB}), 6_MiB);
  EXPECT_EQ(MemoryForExperts({.budget = 3_MiB, .dense = 4_MiB}), Bytes());
}

}  // namespace
}  // namespace troupe
