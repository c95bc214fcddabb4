#include "sim/replay/second_lane.h"

#include <algorithm>

namespace troupe {

void SecondLane::Divide(DemandId demand, std::uint32_t layer, std::span<const ExpertChoice> chosen,
                        std::span<const std::uint32_t> tokens) {
  weights_.assign(tokens.size(), 0);
  for (const ExpertChoice& slot : chosen) {
    weights_[slot.expert] = std::max(weights_[slot.expert], slot.weight);
  }
  misses_.clear();
  for (const ExpertId id : flow_.Unplaced(demand)) {
    misses_.push_back(
        {.expert = id.expert, .rows = tokens[id.expert], .weight = weights_[id.expert]});
  }
  double busy = 0;  // the first lane computes what is resident while loads go on
  for (std::uint32_t e = 0; e < tokens.size(); ++e) {
    const bool resident = flow_.cache().Find({layer, e}) == Residence::kResident;
    if (tokens[e] > 0 && resident) busy += costs_.ExpertSeconds(tokens[e]);
  }
  const MissPlan& plan = planner_.PlanLayer(
      misses_, {.load_seconds = loads_.MeanSeconds().value_or(loads_.SecondsFor(layer)),
                .queued_seconds = loads_.SecondsUnderWay(),
                .latency_seconds = loads_.idle() ? costs_.latency_seconds : 0,
                .local = {.busy_seconds = busy,
                          .first_row_seconds = costs_.expert_first_seconds,
                          .further_row_seconds = costs_.expert_further_seconds},
                .other_seconds = *costs_.second_lane_seconds});
  loaded_.clear();
  for (const MissDecision& decision : plan.decisions) {
    if (decision.answer != MissAnswer::kElsewhere) loaded_.push_back({layer, decision.expert});
  }
  const std::size_t elsewhere = plan.decisions.size() - loaded_.size();
  taken_ += elsewhere;
  ends_ = elsewhere > 0
              ? loads_.now() + static_cast<double>(elsewhere) * *costs_.second_lane_seconds
              : 0;
  flow_.LoadOnly(demand, loaded_);
}

}  // namespace troupe
