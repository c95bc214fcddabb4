// What the experts of a layer cost on a server that works alone: its devices keep what they
// computed last, and load the rest from the host's memory before they compute it (MoE-Infinity, the
// paper's Table I). An expert has its device by its number. What a device keeps is an ExpertCache
// under Lru, the engine's own, in slots of the largest expert's size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "expert/cache/expert_cache.h"
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
    std::unique_ptr<ExpertCache> cache;  // null: no expert has room, each is used and let go
    double speed = 1, load_bytes_per_second = 1;
  };

  // Whether it had to be loaded. Experts are asked for one after the other, so a layer may push out
  // what it asks for next.
  bool BringIn(Device& device, ExpertId id, std::uint32_t tokens);

  const PlacementProblem& problem_;
  ServingCosts costs_;
  std::vector<Device> devices_;
  std::vector<DeviceIndex> first_device_;
  std::vector<std::uint32_t> count_;  // by expert of the layer
  Layer layer_;
};

}  // namespace troupe
