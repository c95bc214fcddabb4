#include "model/resident_experts.h"

#include <utility>

namespace troupe {

void ResidentExperts::Ask(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  ready_.clear();
  for (const ExpertDemand& demand : demands) {
    ready_.push_back(
        {.expert = demand.expert, .weights = weights_.layers[layer].moe.experts[demand.expert]});
  }
  given_ = false;
  asks_ += demands.size();
}

Result<std::span<const ReadyExpert>> ResidentExperts::Take(bool wait) {
  TROUPE_CHECK(!wait || !given_);
  if (std::exchange(given_, true)) return std::span<const ReadyExpert>();
  return std::span<const ReadyExpert>(ready_);
}

}  // namespace troupe
