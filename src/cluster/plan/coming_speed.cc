#include "cluster/plan/coming_speed.h"

#include <algorithm>
#include <cstddef>

namespace troupe {

std::uint32_t ExpertsAtOnce(double disk_bytes_per_second, std::uint64_t expert_bytes) {
  constexpr double kSeconds = 0.1, kLeast = 2, kMost = 16;
  const double experts = kSeconds * disk_bytes_per_second / static_cast<double>(expert_bytes);
  return static_cast<std::uint32_t>(std::clamp(experts, kLeast, kMost));
}

ComingSpeed ComingSpeedOf(const PlanFacts& facts, const PlacementProblem& problem,
                          const Placement& from) {
  return [&facts, &problem, holders = HolderTable(problem, from)](std::uint32_t server,
                                                                  ExpertIndex e) {
    const double disk = problem.servers[server].devices.front().load_bytes_per_second;
    double speed = disk;
    for (const auto& [ends, link] : facts.fetch_bytes_per_second) {
      const bool is_own = ends.first == server || ends.second == server;
      if (!is_own || link < kLeastOfDisk * disk) continue;
      const std::uint32_t other = ends.first == server ? ends.second : ends.first;
      if (holders.Holds(other, e)) speed = std::max(speed, kFetchShare * link);
    }
    return speed;
  };
}

}  // namespace troupe
