#include "placement/placement.h"

#include <algorithm>

namespace troupe {
namespace {

Status ValidateDevice(const Placement& placement, const PlacementProblem& problem,
                      std::uint32_t server, std::size_t device, std::vector<std::uint32_t>& seen) {
  const auto where = [&] {
    return fmt::format("server '{}', device {}", problem.servers[server].name, device);
  };
  const std::vector<ExpertIndex>& held = placement.experts[server][device];
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    const ExpertIndex e = held[i];
    if (e >= problem.experts.size()) {
      return InvalidArgument("{}: expert number {}, the model has {}", where(), e,
                             problem.experts.size());
    }
    if (i > 0 && held[i - 1] >= e) {
      return InvalidArgument("{}: experts are not in rising order at {}", where(),
                             ToString(problem.experts.Id(e)));
    }
    if (seen[e] == server + 1) {
      return InvalidArgument("{}: {} lies on another device of the server, too", where(),
                             ToString(problem.experts.Id(e)));
    }
    seen[e] = server + 1;
    bytes += problem.experts.BytesOf(e);
  }
  const std::uint64_t memory = problem.servers[server].devices[device].memory;
  if (bytes > memory) {
    return InvalidArgument("{}: its experts take {} bytes, it has {}", where(), bytes, memory);
  }
  return OkStatus();
}

}  // namespace

Placement Placement::Empty(const PlacementProblem& problem) {
  Placement placement;
  for (const PlacementServer& server : problem.servers) {
    placement.experts.emplace_back(server.devices.size());
  }
  return placement;
}

std::uint64_t Placement::copies() const {
  std::uint64_t sum = 0;
  for (const auto& server : experts) {
    for (const auto& device : server) sum += device.size();
  }
  return sum;
}

Status Validate(const Placement& placement, const PlacementProblem& problem) {
  if (placement.experts.size() != problem.servers.size()) {
    return InvalidArgument("a placement on {} servers, the problem has {}",
                           placement.experts.size(), problem.servers.size());
  }
  // The last server that held each expert, plus 1: finds duplicates within a server and uncovered
  // experts in one pass, without clearing it between servers.
  std::vector<std::uint32_t> seen(problem.experts.size(), 0);
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    if (placement.experts[n].size() != problem.servers[n].devices.size()) {
      return InvalidArgument("server '{}': a placement on {} devices, it has {}",
                             problem.servers[n].name, placement.experts[n].size(),
                             problem.servers[n].devices.size());
    }
    for (std::size_t d = 0; d < placement.experts[n].size(); ++d) {
      TROUPE_RETURN_IF_ERROR(ValidateDevice(placement, problem, n, d, seen));
    }
  }
  const auto uncovered = std::find(seen.begin(), seen.end(), 0u);
  if (uncovered != seen.end()) {
    return InvalidArgument(
        "{} lies on no device",
        ToString(problem.experts.Id(static_cast<ExpertIndex>(uncovered - seen.begin()))));
  }
  return OkStatus();
}

HolderTable::HolderTable(std::uint32_t servers, std::uint32_t experts)
    : servers_(servers), held_(static_cast<std::size_t>(servers) * experts), copies_(experts) {}

HolderTable::HolderTable(const PlacementProblem& problem, const Placement& placement)
    : HolderTable(problem) {
  for (std::uint32_t n = 0; n < servers_; ++n) {
    for (const auto& device : placement.experts[n]) {
      for (const ExpertIndex e : device) Add(n, e);
    }
  }
}

bool HolderTable::Covers() const {
  return std::find(copies_.begin(), copies_.end(), 0u) == copies_.end();
}

std::vector<ExpertIndex> HolderTable::On(std::uint32_t server) const {
  std::vector<ExpertIndex> held;
  for (ExpertIndex e = 0; e < experts(); ++e) {
    if (Holds(server, e)) held.push_back(e);
  }
  return held;
}

void HolderTable::Add(std::uint32_t server, ExpertIndex e) {
  std::uint8_t& held = held_[static_cast<std::size_t>(server) * copies_.size() + e];
  TROUPE_CHECK(held == 0);
  held = 1;
  ++copies_[e];
}

void HolderTable::Remove(std::uint32_t server, ExpertIndex e) {
  std::uint8_t& held = held_[static_cast<std::size_t>(server) * copies_.size() + e];
  TROUPE_CHECK(held == 1);
  held = 0;
  --copies_[e];
}

}  // namespace troupe
