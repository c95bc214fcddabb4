#include "base/available_cpus.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>
#include <thread>

namespace troupe {
namespace {

std::size_t SchedulableCpus() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    const int count = CPU_COUNT(&set);
    if (count > 0) return static_cast<std::size_t>(count);
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

// Processors' worth of time a period; 0: no quota ("max", -1, or no such file).
double QuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : 0;
}

double QuotaV1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && period > 0 ? quota / period : 0;
}

// A group's quota holds for all below it. In a container the path may be the host's, and only the
// mount itself is there to be read.
double LeastQuota(const std::string& mount, std::string path,
                  double (*quota_of)(const std::string&), double least) {
  for (;;) {
    const double quota = quota_of(mount + path);
    if (quota > 0) least = std::min(least, quota);
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.resize(slash);
  }
}

}  // namespace

std::size_t AvailableCpus(const std::string& root) {
  const std::size_t schedulable = SchedulableCpus();
  double least = static_cast<double>(schedulable);
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {  // "number:controllers:path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers =
        fmt::format(",{},", std::string_view(line).substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      least = LeastQuota(root + "/sys/fs/cgroup", path, QuotaV2, least);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      least = LeastQuota(root + "/sys/fs/cgroup/cpu", path, QuotaV1, least);
    }
  }
  // A thread beyond the quota would be stopped in the middle of a region that others wait for.
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::floor(least + 0.01)));
}

}  // namespace troupe
