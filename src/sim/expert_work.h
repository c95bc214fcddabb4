// What the experts of one layer cost one pass: which hosts are called with how much, how long each
// of their devices computes, and what nobody holds any more. Reuses its memory from pass to pass.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "placement/call_routes.h"
#include "placement/latency_model.h"
#include "placement/placement.h"
#include "placement/problem.h"
#include "sim/routing_trace.h"

namespace troupe {

// Devices of all servers in one row.
using DeviceIndex = std::uint32_t;

struct DeviceJob {
  DeviceIndex device = 0;
  double seconds = 0;
};

// Where each expert lies on each server, kept up to date while experts move.
class ExpertMap {
 public:
  ExpertMap(const PlacementProblem& problem, const Placement& placement);

  const CallRoutes& routes() const { return routes_; }
  const HolderTable& holders() const { return holders_; }
  DeviceIndex DeviceOf(std::uint32_t server, ExpertIndex e) const {
    return first_device_[server] + local_[static_cast<std::size_t>(server) * experts_ + e];
  }
  DeviceIndex FirstDevice(std::uint32_t server) const { return first_device_[server]; }
  DeviceIndex devices() const { return first_device_.back(); }
  void Load(std::uint32_t server, std::uint32_t device, ExpertIndex e);
  void Drop(std::uint32_t server, std::uint32_t device, ExpertIndex e);
  // All that a server holds is out of reach, or there again. REQUIRES: Load and Drop are not called
  // for it in between.
  void Lose(std::uint32_t server);
  void Regain(std::uint32_t server);

 private:
  std::size_t experts_;
  std::vector<DeviceIndex> first_device_;  // by server, and one past the last
  std::vector<std::uint8_t> local_;        // [server][expert]: device of the server
  HolderTable holders_;
  CallRoutes routes_;
  std::vector<std::vector<ExpertIndex>> lost_;  // by server
};

class ExpertWork {
 public:
  struct Visit {
    std::uint32_t host = 0;         // kDisk: nobody holds them, their user reads them
    std::uint32_t tokens = 0;       // that have an expert there
    std::uint32_t assignments = 0;  // (token, expert) pairs
    std::vector<DeviceJob> jobs;    // none of kDisk
    std::uint64_t bytes = 0;        // of the experts
    double seconds = 0;             // of computing them, at speed 1
  };

  static constexpr std::uint32_t kDisk = CallRoutes::kNobody;

  ExpertWork(const PlacementProblem& problem, const ServingCosts& costs);

  // For `tokens` of the trace from `first` on, at `layer`, of a user of `server`. Valid until the
  // next call. Adds to counts (by ExpertIndex) if there are any.
  std::span<const Visit> Divide(const RoutingTrace& trace, std::uint32_t first,
                                std::uint32_t tokens, std::uint32_t layer, std::uint32_t server,
                                const ExpertMap& map, double* counts);

 private:
  // Of a host in tables by server: the disk has the last place.
  std::uint32_t PlaceOf(std::uint32_t host) const {
    return host == kDisk ? problem_.server_count() : host;
  }
  std::uint32_t VisitOf(std::uint32_t host);
  void AddJob(DeviceIndex device, double work, Visit& visit) const;

  const PlacementProblem& problem_;
  ServingCosts costs_;
  std::vector<double> speeds_;             // by DeviceIndex
  std::vector<std::uint32_t> count_;       // by expert of the layer
  std::vector<std::uint32_t> touched_;     // experts of the layer
  std::vector<std::uint32_t> visit_of_;    // by server, the disk last; kNone: not visited
  std::vector<std::uint64_t> last_token_;  // by server: stamp of the token that visited it last
  std::vector<Visit> visits_;
  std::size_t used_ = 0;
  std::uint64_t stamp_ = 0;
};

}  // namespace troupe
