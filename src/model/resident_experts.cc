#include "model/resident_experts.h"

#include <utility>

namespace troupe {

void ResidentExperts::Ask(const ExpertBatch& batch) {
  const std::vector<Mlp>& experts = weights_.layers[batch.layer].moe.experts;
  ready_.clear();
  for (const ExpertDemand& demand : batch.demands) {
    ready_.push_back({.expert = demand.expert, .answer = experts[demand.expert]});
  }
  given_ = false;
  asks_ += batch.demands.size();
}

Result<std::span<const ReadyExpert>> ResidentExperts::Take(bool wait) {
  TROUPE_CHECK(!wait || !given_);
  if (std::exchange(given_, true)) return std::span<const ReadyExpert>();
  return std::span<const ReadyExpert>(ready_);
}

}  // namespace troupe
