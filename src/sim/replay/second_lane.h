// A second place where a missing expert can be computed, where it lies: which of a layer's misses
// go there, so that both lanes end as soon as they can (expert/flow/plan_layer.h), and until when
// it is at work. What it does not take is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/expert_choice.h"
#include "expert/flow/miss_flow.h"
#include "expert/flow/plan_layer.h"
#include "sim/replay/replay_loads.h"

namespace troupe {

class SecondLane {
 public:
  // All must outlive it.
  SecondLane(const ReplayCosts& costs, const ReplayLoads& loads, MissFlow& flow)
      : costs_(costs), loads_(loads), flow_(flow) {}

  // False if the costs know of none: nothing is asked of it then.
  bool exists() const { return costs_.second_lane_seconds.has_value(); }

  // Takes what is best computed there of what the demand has no place for, and tells the flow to
  // load only the rest. tokens: [expert], of what the layer needs.
  void Divide(DemandId demand, std::uint32_t layer, std::span<const ExpertChoice> chosen,
              std::span<const std::uint32_t> tokens);

  // From now until it has computed what it took; not above zero if it is idle.
  double SecondsLeft() const { return ends_ - loads_.now(); }
  std::uint64_t taken() const { return taken_; }

 private:
  const ReplayCosts& costs_;
  const ReplayLoads& loads_;
  MissFlow& flow_;
  LayerPlanner planner_;
  std::vector<LaneMiss> misses_;  // of the layer under way, without a slot
  std::vector<ExpertId> loaded_;  // of them
  std::vector<float> weights_;    // [expert]: the largest that a token gives it
  double ends_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace troupe
