// The planner of misses for a layer with two lanes, of which nothing but seconds is known: one
// loads experts and computes them as they come, the other computes them where they lie. What a
// replay asks in place of BalanceLanes (lane_balance.h), whose load lane computes nothing while it
// loads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/flow/miss_planner.h"

namespace troupe {

struct LaneMiss {
  std::uint32_t expert = 0;
  std::uint32_t rows = 1;
  double weight = 0;  // the largest that a row gives it: the best are loaded
};

struct TwoLanes {
  double load_seconds = 0;    // of an expert
  double queued_seconds = 0;  // of loads that are ahead of the layer's
  double latency_seconds = 0;
  LocalWork local;
  double other_seconds = 0;  // of an expert on the second lane
};

class LayerPlanner {
 public:
  // Decisions begin with the best; those of the second lane are kElsewhere. Valid until the next
  // call.
  const MissPlan& PlanLayer(std::span<const LaneMiss> misses, const TwoLanes& lanes);

 private:
  MissPlanner planner_;
  std::vector<Miss> misses_;
};

}  // namespace troupe
