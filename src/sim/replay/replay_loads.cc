#include "sim/replay/replay_loads.h"

namespace troupe {

ReplayLoads::ReplayLoads(const TraceHeader& header, const ReplayCosts& costs)
    : link_(costs.latency_seconds), seconds_(header.layers) {
  const std::vector<std::uint64_t>& bytes =
      costs.expert_bytes.empty() ? header.expert_bytes : costs.expert_bytes;
  if (!bytes.empty()) weight_.resize(header.layers);
  for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
    if (!costs.load_seconds.empty()) seconds_[header.moe_layers[l]] = costs.load_seconds[l];
    if (!bytes.empty()) weight_[header.moe_layers[l]] = bytes[l];
  }
}

double ReplayLoads::SecondsFor(std::uint32_t layer) const { return seconds_[layer]; }

double ReplayLoads::SecondsUnderWay() const {
  return idle() ? 0 : std::max(0.0, link_.NextEnd() - now_);
}

void ReplayLoads::Begin(ExpertId id, std::uint32_t, ExpertCopy, Urgency urgency) {
  link_.Request(id, seconds_[id.layer], urgency == Urgency::kDemand, now_);
  mean_.Add(seconds_[id.layer]);
  ++loads_;
  if (!weight_.empty()) bytes_ += weight_[id.layer];
}

std::span<const LoadEnd> ReplayLoads::TakeEnded() {
  ids_.clear();
  ended_.clear();
  link_.AdvanceTo(now_, ids_);
  for (const ExpertId id : ids_) ended_.push_back({.id = id, .status = OkStatus()});
  return ended_;
}

}  // namespace troupe
