#include "placement/device_packing.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace troupe {
namespace {

// One server while it is being packed.
struct ServerPacking {
  const PlacementProblem& problem;
  const PlacementServer& server;
  std::vector<std::vector<ExpertIndex>> devices;
  std::vector<std::uint64_t> free;
  std::vector<double> load;

  ServerPacking(const PlacementProblem& p, std::uint32_t n)
      : problem(p), server(p.servers[n]), devices(server.devices.size()), load(devices.size(), 0) {
    for (const PlacementDevice& device : server.devices) free.push_back(device.memory);
  }

  void Put(ExpertIndex e, std::size_t device) {
    devices[device].push_back(e);
    free[device] -= problem.experts.BytesOf(e);
    load[device] += server.activations[e];
  }
  // The device with room whose work would end first, by its speed.
  std::optional<std::size_t> LeastLoaded(ExpertIndex e) const {
    std::optional<std::size_t> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const double busy = (load[d] + server.activations[e]) / server.devices[d].speed;
      // Ties go to the device with more room.
      if (free[d] < problem.experts.BytesOf(e)) continue;
      if (busy < least || (busy == least && free[d] > free[*best])) {
        best = d;
        least = busy;
      }
    }
    return best;
  }
  std::optional<std::size_t> TightestFit(ExpertIndex e) const {
    std::optional<std::size_t> best;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (free[d] < problem.experts.BytesOf(e)) continue;
      if (!best || free[d] < free[*best]) best = d;
    }
    return best;
  }
  // Returns the experts that fit nowhere.
  template <typename Choose>
  std::vector<ExpertIndex> PutAll(const std::vector<ExpertIndex>& experts, Choose choose) {
    std::vector<ExpertIndex> left;
    for (const ExpertIndex e : experts) {
      if (const std::optional<std::size_t> device = choose(e)) {
        Put(e, *device);
      } else {
        left.push_back(e);
      }
    }
    return left;
  }
};

// Puts the wanted experts that lay on a device in `before` there again; returns the others.
std::vector<ExpertIndex> KeepFrom(const std::vector<std::vector<ExpertIndex>>& before,
                                  std::vector<ExpertIndex> wanted, ServerPacking& packing) {
  for (std::size_t d = 0; d < before.size(); ++d) {
    for (const ExpertIndex e : before[d]) {
      const auto found = std::lower_bound(wanted.begin(), wanted.end(), e);
      if (found == wanted.end() || *found != e) continue;
      packing.Put(e, d);
      wanted.erase(found);
    }
  }
  return wanted;
}

std::vector<std::vector<ExpertIndex>> PackServer(const PlacementProblem& problem, std::uint32_t n,
                                                 std::vector<ExpertIndex> wanted,
                                                 const Placement* before) {
  const auto& activations = problem.servers[n].activations;
  ServerPacking packing(problem, n);
  if (before != nullptr) {
    wanted = KeepFrom(before->experts[n], std::move(wanted), packing);
  }
  // The largest first, because they have the fewest places; of equal sizes the busiest first, so
  // that the small loads even out the devices at the end.
  std::stable_sort(wanted.begin(), wanted.end(), [&](ExpertIndex a, ExpertIndex b) {
    const std::uint64_t size_a = problem.experts.BytesOf(a), size_b = problem.experts.BytesOf(b);
    return size_a != size_b ? size_a > size_b : activations[a] > activations[b];
  });
  ServerPacking balanced = packing;
  const std::vector<ExpertIndex> left =
      balanced.PutAll(wanted, [&](ExpertIndex e) { return balanced.LeastLoaded(e); });
  if (left.empty()) return balanced.devices;
  // Balancing left too little room: start again, the largest first into the tightest gap (best-fit
  // decreasing), which wastes the least. What still does not fit CoverMissing repairs.
  (void)packing.PutAll(wanted, [&](ExpertIndex e) { return packing.TightestFit(e); });
  return packing.devices;
}

// What has to leave a device so that `bytes` fit, and what that costs; nothing if they cannot.
struct Eviction {
  std::vector<ExpertIndex> experts;
  double lost = 0;
};

// Drops only duplicates, those with the fewest activations per byte first (a greedy knapsack).
std::optional<Eviction> MakeRoom(const PlacementProblem& problem, const HolderTable& holders,
                                 std::uint32_t n, const std::vector<ExpertIndex>& device,
                                 std::uint64_t memory, std::uint64_t bytes) {
  std::uint64_t free = memory - UsedBytes(problem, device);
  Eviction eviction;
  if (free >= bytes) return eviction;
  const auto& activations = problem.servers[n].activations;
  std::vector<ExpertIndex> duplicates;
  for (const ExpertIndex e : device) {
    if (holders.CopiesOf(e) > 1) duplicates.push_back(e);
  }
  std::stable_sort(duplicates.begin(), duplicates.end(), [&](ExpertIndex a, ExpertIndex b) {
    return activations[a] * static_cast<double>(problem.experts.BytesOf(b)) <
           activations[b] * static_cast<double>(problem.experts.BytesOf(a));
  });
  for (const ExpertIndex e : duplicates) {
    eviction.experts.push_back(e);
    eviction.lost += activations[e];
    free += problem.experts.BytesOf(e);
    if (free >= bytes) return eviction;
  }
  return std::nullopt;
}

// Tries every device and takes the one where the local activations lost, minus those gained, are
// fewest.
Status CoverOne(const PlacementProblem& problem, ExpertIndex e, HolderTable& holders,
                Placement& placement) {
  std::optional<Eviction> best;
  double least = std::numeric_limits<double>::infinity();
  std::uint32_t at_server = 0;
  std::size_t at_device = 0;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    for (std::size_t d = 0; d < placement.experts[n].size(); ++d) {
      const auto room = MakeRoom(problem, holders, n, placement.experts[n][d],
                                 problem.servers[n].devices[d].memory, problem.experts.BytesOf(e));
      const double cost = room ? room->lost - problem.servers[n].activations[e] : 0;
      if (!room || cost >= least) continue;
      best = room;
      least = cost;
      at_server = n;
      at_device = d;
    }
  }
  if (!best) {
    return Error(Code::kResourceExhausted,
                 "{}: {} find no room beside experts that nobody else holds; the sizes are too "
                 "uneven for this placement",
                 ToString(problem.experts.Id(e)), ToString(Bytes(problem.experts.BytesOf(e))));
  }
  std::vector<ExpertIndex>& device = placement.experts[at_server][at_device];
  for (const ExpertIndex gone : best->experts) {
    RemoveFrom(device, gone);
    holders.Remove(at_server, gone);
  }
  AddTo(device, e);
  holders.Add(at_server, e);
  return OkStatus();
}

}  // namespace

void AddTo(std::vector<ExpertIndex>& device, ExpertIndex e) {
  device.insert(std::lower_bound(device.begin(), device.end(), e), e);
}

void RemoveFrom(std::vector<ExpertIndex>& device, ExpertIndex e) {
  const auto found = std::lower_bound(device.begin(), device.end(), e);
  TROUPE_CHECK(found != device.end() && *found == e);
  device.erase(found);
}

std::uint64_t UsedBytes(const PlacementProblem& problem, const std::vector<ExpertIndex>& device) {
  return std::accumulate(
      device.begin(), device.end(), std::uint64_t{0},
      [&](std::uint64_t sum, ExpertIndex e) { return sum + problem.experts.BytesOf(e); });
}

Result<Placement> PackDevices(const PlacementProblem& problem, const HolderTable& holders,
                              const Placement* before) {
  Placement placement;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    placement.experts.push_back(PackServer(problem, n, holders.On(n), before));
    for (auto& device : placement.experts.back()) std::sort(device.begin(), device.end());
  }
  TROUPE_RETURN_IF_ERROR(CoverMissing(problem, placement));
  return placement;
}

Status CoverMissing(const PlacementProblem& problem, Placement& placement) {
  HolderTable holders(problem, placement);
  std::vector<ExpertIndex> missing;
  for (ExpertIndex e = 0; e < problem.experts.size(); ++e) {
    if (holders.CopiesOf(e) == 0) missing.push_back(e);
  }
  std::stable_sort(missing.begin(), missing.end(), [&](ExpertIndex a, ExpertIndex b) {
    return problem.experts.BytesOf(a) > problem.experts.BytesOf(b);
  });
  for (const ExpertIndex e : missing) {
    TROUPE_RETURN_IF_ERROR(CoverOne(problem, e, holders, placement));
  }
  return OkStatus();
}

void FillFreeMemory(const PlacementProblem& problem, Placement& placement) {
  // Greedy by activations per byte; the server's own users count first, all users break ties.
  std::vector<double> everybody(problem.experts.size(), 0);
  for (const PlacementServer& server : problem.servers) {
    for (ExpertIndex e = 0; e < everybody.size(); ++e) everybody[e] += server.activations[e];
  }
  std::uint64_t smallest = problem.experts.total_bytes();
  for (ExpertIndex e = 0; e < everybody.size(); ++e) {
    smallest = std::min(smallest, problem.experts.BytesOf(e));
  }
  const HolderTable holders(problem, placement);
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    std::vector<std::uint64_t> free;
    for (std::size_t d = 0; d < placement.experts[n].size(); ++d) {
      free.push_back(problem.servers[n].devices[d].memory -
                     UsedBytes(problem, placement.experts[n][d]));
    }
    if (*std::max_element(free.begin(), free.end()) < smallest) continue;
    const auto& own = problem.servers[n].activations;
    std::vector<ExpertIndex> wanted;
    for (ExpertIndex e = 0; e < everybody.size(); ++e) {
      if (!holders.Holds(n, e)) wanted.push_back(e);
    }
    const auto density = [&](ExpertIndex e) {
      const auto bytes = static_cast<double>(problem.experts.BytesOf(e));
      return std::pair(own[e] / bytes, everybody[e] / bytes);
    };
    std::stable_sort(wanted.begin(), wanted.end(),
                     [&](ExpertIndex a, ExpertIndex b) { return density(a) > density(b); });
    for (const ExpertIndex e : wanted) {
      const auto roomiest = std::max_element(free.begin(), free.end());
      if (*roomiest < problem.experts.BytesOf(e)) continue;
      AddTo(placement.experts[n][static_cast<std::size_t>(roomiest - free.begin())], e);
      *roomiest -= problem.experts.BytesOf(e);
    }
  }
}

}  // namespace troupe
