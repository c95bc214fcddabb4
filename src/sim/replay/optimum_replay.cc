#include "sim/replay/optimum_replay.h"

namespace troupe {

OptimumReplay::OptimumReplay(const TraceHeader& header, CacheShape shape, const ReplayCosts& costs,
                             Optimum::Future future)
    : header_(header),
      expert_bytes_(costs.expert_bytes.empty() ? header.expert_bytes : costs.expert_bytes),
      optimum_(std::move(shape), /*loads_all=*/!costs.second_lane_seconds),
      future_(std::move(future)) {
  result_.layers.resize(header_.moe_layers.size());
}

void OptimumReplay::Play(const ReplayPass& pass) {
  std::uint64_t hits = 0, asks = 0;
  for (std::size_t l = 0; l < pass.demands.size(); ++l) {
    const std::uint32_t layer = header_.moe_layers[l];
    asks_.clear();
    for (const ExpertDemand& demand : pass.demands[l]) {
      asks_.push_back(future_.next());
      TROUPE_CHECK(asks_.back().id == (ExpertId{layer, demand.expert}));
    }
    const std::uint32_t found = optimum_.Play(layer, asks_);
    ReplayCounts& counts = result_.layers[l];
    counts.tokens += pass.tokens;
    ++counts.passes;
    counts.asks += asks_.size();
    counts.hits += found;
    const std::uint64_t loads = asks_.size() - found;
    result_.loads += loads;
    if (!expert_bytes_.empty()) result_.bytes += loads * expert_bytes_[l];
    result_.crowded += asks_.size() > optimum_.CapacityOf(layer) ? 1 : 0;
    hits += found;
    asks += asks_.size();
  }
  CountPass(pass, hits, asks, result_);
}

ReplayResult OptimumReplay::result() const {
  ReplayResult result = result_;
  result.cache = {
      .hits = optimum_.hits(), .misses = result_.loads, .evictions = optimum_.evictions()};
  return result;
}

}  // namespace troupe
