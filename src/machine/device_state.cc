#include "machine/device_state.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <vector>

namespace troupe {
namespace {

namespace fs = std::filesystem;

std::string FirstWord(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

std::optional<double> PositiveIn(const fs::path& path) {
  const std::string word = FirstWord(path);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || !(number > 0)) return std::nullopt;
  return number;
}

// In the order of their names: what is found first is the same on every run.
std::vector<fs::path> FoldersIn(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    found.push_back(it->path());
  }
  std::ranges::sort(found);
  return found;
}

// "100000 50000": microseconds of processors in each period; "max": no limit.
std::optional<double> QuotaOfV2(const fs::path& folder) {
  std::ifstream file(folder / "cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> QuotaOfV1(const fs::path& folder) {
  const auto quota = PositiveIn(folder / "cpu.cfs_quota_us");
  const auto period = PositiveIn(folder / "cpu.cfs_period_us");
  if (!quota || !period) return std::nullopt;
  return *quota / *period;
}

// A group's limit holds for all below it.
double WithinGroups(double cpus, const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {  // "number:controllers:path"
    std::istringstream parts(line);
    std::string number, controllers, path;
    std::getline(parts, number, ':');
    std::getline(parts, controllers, ':');
    std::getline(parts, path);
    const bool is_v2 = controllers.empty();
    if (!is_v2 && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string mount = root + (is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
    for (;;) {
      const auto quota = is_v2 ? QuotaOfV2(mount + path) : QuotaOfV1(mount + path);
      if (quota) cpus = std::min(cpus, *quota);
      const std::size_t slash = path.rfind('/');
      if (path.empty() || slash == path.npos) break;
      path.resize(slash);
    }
  }
  return cpus;
}

// "cpu  user nice system idle iowait irq softirq steal guest guest_nice"
ProcessorTime ReadProcessorTime(const std::string& root) {
  std::ifstream file(root + "/proc/stat");
  std::string name;
  ProcessorTime time;
  if (!(file >> name) || name != "cpu") return time;
  constexpr int kIdle = 3, kWaits = 4, kGuest = 8;  // guests' time is in that of users already
  std::uint64_t ticks = 0;
  for (int column = 0; column < kGuest && file >> ticks; ++column) {
    time.all += ticks;
    if (column == kIdle || column == kWaits) time.idle += ticks;
  }
  return time;
}

// "pid (name) state ppid …", where the name may hold anything: user and system time are the 12th
// and 13th word behind its last bracket.
std::uint64_t ReadOwnTime(const std::string& root) {
  std::ifstream file(root + "/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name = line.rfind(')');
  if (name == line.npos) return 0;
  std::istringstream words(line.substr(name + 1));
  constexpr int kBefore = 11;
  std::string word;
  for (int i = 0; i < kBefore; ++i) words >> word;
  std::uint64_t user = 0, system = 0;
  words >> user >> system;
  return user + system;
}

struct Battery {
  double level = 0;            // 0 to 1
  std::optional<double> size;  // of what it holds when full, in microwatt-hours
  std::string status;
};

Battery ReadBattery(const fs::path& supply) {
  constexpr double kPercent = 100, kMicro = 1e-6;
  Battery battery{.level = std::min(PositiveIn(supply / "capacity").value_or(0) / kPercent, 1.0),
                  .size = PositiveIn(supply / "energy_full"),
                  .status = FirstWord(supply / "status")};
  const auto charge = PositiveIn(supply / "charge_full");
  const auto volts = PositiveIn(supply / "voltage_min_design");
  if (!battery.size && charge && volts) battery.size = *charge * *volts * kMicro;
  return battery;
}

// A laptop may have two, of which one is emptied or charged after the other: each counts by its
// size, or all alike where one does not say its own.
void ReadBatteries(const std::string& root, DeviceState& state) {
  std::vector<Battery> all;
  for (const fs::path& supply : FoldersIn(root + "/sys/class/power_supply")) {
    if (FirstWord(supply / "type") != "Battery") continue;
    if (FirstWord(supply / "scope") == "Device") continue;  // of a mouse
    if (FirstWord(supply / "present") == "0") continue;     // a bay with nothing in it
    all.push_back(ReadBattery(supply));
  }
  if (all.empty()) return;
  const bool have_sizes =
      std::ranges::all_of(all, [](const Battery& one) { return one.size.has_value(); });
  double held = 0, sizes = 0;
  bool charges = false;
  for (const Battery& one : all) {
    const double size = have_sizes ? *one.size : 1;
    held += one.level * size;
    sizes += size;
    charges |= one.status == "Charging";
    state.discharging |= one.status == "Discharging";
  }
  state.battery = held / sizes;
  state.discharging &= !charges;  // one into the other, on the mains
}

void ReadPowerCap(const std::string& root, DeviceState& state) {
  constexpr double kMicro = 1e-6;
  for (const fs::path& zone : FoldersIn(root + "/sys/class/powercap")) {
    if (FirstWord(zone / "enabled") == "0") continue;
    const auto cap = PositiveIn(zone / "constraint_0_power_limit_uw");
    if (!cap) continue;
    state.power_cap_watts = *cap * kMicro;
    if (const auto most = PositiveIn(zone / "constraint_0_max_power_uw")) {
      state.power_most_watts = *most * kMicro;
    }
    return;
  }
}

}  // namespace

Result<DeviceState> ReadDeviceState(std::uint32_t cpus, const std::string& root) {
  DeviceState state;
  TROUPE_ASSIGN_OR_RETURN(state.memory, ReadMachineMemory(root));
  state.processors = WithinGroups(cpus, root);
  state.time = ReadProcessorTime(root);
  state.time.own = ReadOwnTime(root);
  ReadBatteries(root, state);
  ReadPowerCap(root, state);
  return state;
}

std::optional<double> FreeProcessors(const ProcessorTime& before, const ProcessorTime& now,
                                     std::uint32_t cpus) {
  constexpr std::uint64_t kLeastTicks = 10;
  if (now.all < before.all + kLeastTicks || now.idle < before.idle || now.own < before.own) {
    return std::nullopt;
  }
  const auto free = static_cast<double>(now.idle - before.idle + now.own - before.own);
  return cpus * std::min(free / static_cast<double>(now.all - before.all), 1.0);
}

}  // namespace troupe
