// What the experts of a layer cost on a server that works alone: its devices keep what they
// computed last, and load the rest from the host's memory before they compute it (MoE-Infinity, the
// paper's Table I). An expert has its device by its number; the least recently used one gives way.
#pragma once

#include <cstdint>
#include <list>
#include <span>
#include <vector>

#include "placement/latency_model.h"
#include "placement/problem.h"
#include "sim/expert_work.h"
#include "sim/routing_trace.h"

namespace troupe {

class OffloadWork {
 public:
  struct Layer {
    std::vector<DeviceJob> jobs;         // loading and computing
    std::uint64_t hits = 0, misses = 0;  // (token, expert) pairs of experts that were there, or not
  };

  OffloadWork(const PlacementProblem& problem, const ServingCosts& costs);

  // Like ExpertWork::Divide, for the server that runs the pass. Valid until the next call.
  const Layer& Divide(const RoutingTrace& trace, std::uint32_t first, std::uint32_t tokens,
                      std::uint32_t layer, std::uint32_t server);

 private:
  struct Device {
    std::uint64_t memory = 0, used = 0;
    double speed = 1, load_bytes_per_second = 1;
    std::list<ExpertIndex> by_use;                        // the least recently used last
    std::vector<std::list<ExpertIndex>::iterator> where;  // by expert; end: absent
  };

  // Seconds of loading; 0 if it is there.
  double BringIn(Device& device, ExpertIndex e);

  const PlacementProblem& problem_;
  ServingCosts costs_;
  std::vector<Device> devices_;
  std::vector<DeviceIndex> first_device_;
  std::vector<std::uint32_t> count_;  // by expert of the layer
  Layer layer_;
};

}  // namespace troupe
