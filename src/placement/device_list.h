// All devices of a problem in one list, with the memory left on them. Methods that place by device
// and not by server work on it (uniform, redundance, smartmoe, eplb).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "placement/placement.h"
#include "placement/problem.h"

namespace troupe {

struct DeviceRoom {
  std::uint32_t server = 0;
  std::uint32_t device = 0;
  double speed = 1;
  std::uint64_t free = 0;
};

inline std::vector<DeviceRoom> ListDevices(const PlacementProblem& problem) {
  std::vector<DeviceRoom> rooms;
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    const auto& devices = problem.servers[n].devices;
    for (std::uint32_t d = 0; d < devices.size(); ++d) {
      rooms.push_back({n, d, devices[d].speed, devices[d].memory});
    }
  }
  return rooms;
}

// Experts in the order of placing; sorted by Finish.
class PlacementBuilder {
 public:
  explicit PlacementBuilder(const PlacementProblem& problem)
      : problem_(problem), holders_(problem), placement_(Placement::Empty(problem)) {}

  const HolderTable& holders() const { return holders_; }
  bool Fits(const DeviceRoom& room, ExpertIndex e) const {
    return room.free >= problem_.experts.BytesOf(e) && !holders_.Holds(room.server, e);
  }
  void Put(DeviceRoom& room, ExpertIndex e) {
    placement_.experts[room.server][room.device].push_back(e);
    holders_.Add(room.server, e);
    room.free -= problem_.experts.BytesOf(e);
  }
  Placement Finish() && {
    for (auto& server : placement_.experts) {
      for (auto& device : server) std::sort(device.begin(), device.end());
    }
    return std::move(placement_);
  }

 private:
  const PlacementProblem& problem_;
  HolderTable holders_;
  Placement placement_;
};

// Activations of all users together, by expert.
inline std::vector<double> TotalActivations(const PlacementProblem& problem) {
  std::vector<double> total(problem.experts.size(), 0);
  for (const PlacementServer& server : problem.servers) {
    for (ExpertIndex e = 0; e < total.size(); ++e) total[e] += server.activations[e];
  }
  return total;
}

// Not std::shuffle, which may give another order with another library.
template <typename T>
void Shuffle(std::vector<T>& items, Rng& rng) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.Below(i)]);
}

}  // namespace troupe
