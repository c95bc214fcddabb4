#include "machine/device_state.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_folder.h"

namespace troupe {
namespace {

class DeviceStateTest : public testing::Test {
 protected:
  void SetUp() override { Write("/proc/meminfo", "MemAvailable:    8192 kB\n"); }
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder_.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  DeviceState Read() { return ReadDeviceState(8, folder_.path().string()).value(); }

  TempFolder folder_;
};

TEST_F(DeviceStateTest, OfAMachineWithoutLimitsIsAllThatItHas) {
  const DeviceState state = Read();
  EXPECT_EQ(state.processors, 8);
  EXPECT_EQ(state.memory.available, 8_MiB);
  EXPECT_EQ(state.battery, std::nullopt);
  EXPECT_EQ(state.power_cap_watts, std::nullopt);
  EXPECT_EQ(state.time, ProcessorTime());
}

TEST_F(DeviceStateTest, TheTightestGroupSaysHowManyProcessorsThereAre) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  Write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(Read().processors, 1.5);
  Write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(Read().processors, 0.5);
}

TEST_F(DeviceStateTest, GroupsOfTheFirstVersionCountToo) {
  Write("/proc/self/cgroup", "3:cpuset:/x\n4:cpu,cpuacct:/c\n");
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "200000\n");
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Read().processors, 2);
  Write("/sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Read().processors, 8);
}

TEST_F(DeviceStateTest, TheBatteryIsTheMachinesAndNotItsMouses) {
  Write("/sys/class/power_supply/AC/type", "Mains\n");
  Write("/sys/class/power_supply/hid/type", "Battery\n");
  Write("/sys/class/power_supply/hid/scope", "Device\n");
  Write("/sys/class/power_supply/hid/capacity", "5\n");
  EXPECT_EQ(Read().battery, std::nullopt);
  Write("/sys/class/power_supply/BAT0/type", "Battery\n");
  Write("/sys/class/power_supply/BAT0/capacity", "40\n");
  Write("/sys/class/power_supply/BAT0/status", "Discharging\n");
  EXPECT_EQ(Read().battery, 0.4);
  EXPECT_TRUE(Read().discharging);
  Write("/sys/class/power_supply/BAT0/status", "Charging\n");
  EXPECT_FALSE(Read().discharging);
}

TEST_F(DeviceStateTest, TwoBatteriesAreOneOfTheirSizeTogether) {
  const auto battery = [this](const std::string& name, const std::string& level,
                              const std::string& status, const std::string& size) {
    const std::string folder = "/sys/class/power_supply/" + name;
    Write(folder + "/type", "Battery\n");
    Write(folder + "/capacity", level + "\n");
    Write(folder + "/status", status + "\n");
    if (!size.empty()) Write(folder + "/energy_full", size + "\n");
  };
  battery("BAT0", "100", "Not charging", "");
  battery("BAT1", "20", "Discharging", "60000000");
  EXPECT_DOUBLE_EQ(Read().battery.value_or(-1), 0.6) << "one does not say its size";
  EXPECT_TRUE(Read().discharging) << "the first is kept for later";
  battery("BAT0", "100", "Not charging", "20000000");
  EXPECT_DOUBLE_EQ(Read().battery.value_or(-1), 0.4);
  battery("BAT0", "90", "Charging", "20000000");
  EXPECT_FALSE(Read().discharging);
  battery("BAT2", "0", "Unknown", "");
  Write("/sys/class/power_supply/BAT2/present", "0\n");
  EXPECT_DOUBLE_EQ(Read().battery.value_or(-1), 0.375) << "a bay with nothing in it";
}

TEST_F(DeviceStateTest, ABatteryThatTellsItsChargeIsWeighedByItsVoltage) {
  const std::string supplies = "/sys/class/power_supply/";
  for (const char* name : {"BAT0", "BAT1"}) Write(supplies + name + "/type", "Battery\n");
  Write(supplies + "BAT0/capacity", "100\n");
  Write(supplies + "BAT0/energy_full", "30000000\n");
  Write(supplies + "BAT1/capacity", "50\n");
  Write(supplies + "BAT1/charge_full", "1000000\n");
  Write(supplies + "BAT1/voltage_min_design", "10000000\n");
  EXPECT_DOUBLE_EQ(Read().battery.value_or(-1), 0.875);
}

TEST_F(DeviceStateTest, APowerCapCountsUnlessItIsTurnedOff) {
  const std::string zone = "/sys/class/powercap/intel-rapl:0/";
  Write(zone + "constraint_0_power_limit_uw", "15000000\n");
  Write(zone + "constraint_0_max_power_uw", "60000000\n");
  EXPECT_EQ(Read().power_cap_watts, 15.0);
  EXPECT_EQ(Read().power_most_watts, 60.0);
  Write(zone + "enabled", "0\n");
  EXPECT_EQ(Read().power_cap_watts, std::nullopt);
}

TEST_F(DeviceStateTest, CountsTheTimeOfProcessorsWithoutThatOfGuestsTwice) {
  Write("/proc/stat", "cpu  100 10 40 800 50 1 2 3 90 9\ncpu0 1 1 1 1\n");
  Write("/proc/self/stat", "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 30 12 1 1\n");
  EXPECT_EQ(Read().time, (ProcessorTime{.all = 1006, .idle = 850, .own = 42}));
}

TEST(FreeProcessors, AreThoseThatNobodyElseUsedBetweenTwoLooks) {
  const ProcessorTime before{.all = 1000, .idle = 500, .own = 7};
  EXPECT_EQ(FreeProcessors(before, {.all = 1400, .idle = 600, .own = 7}, 8), 2);
  EXPECT_EQ(FreeProcessors(before, {.all = 1400, .idle = 600, .own = 107}, 8), 4);
  EXPECT_EQ(FreeProcessors(before, {.all = 1005, .idle = 505, .own = 7}, 8), std::nullopt);
  EXPECT_EQ(FreeProcessors({}, {}, 8), std::nullopt);
}

}  // namespace
}  // namespace troupe
