#include "sim/offload_work.h"

#include <algorithm>

#include "expert/cache/lru.h"

namespace troupe {
namespace {

ExpertGrid GridOf(const ExpertTable& experts) {
  ExpertGrid grid{.layers = experts.layers()};
  for (std::uint32_t l = 0; l < grid.layers; ++l) {
    grid.experts = std::max(grid.experts, experts.CountIn(l));
  }
  return grid;
}

std::uint64_t SlotBytes(const ExpertTable& experts) {
  std::uint64_t largest = 1;
  for (ExpertIndex e = 0; e < experts.size(); ++e) largest = std::max(largest, experts.BytesOf(e));
  return largest;
}

std::unique_ptr<ExpertCache> MakeCache(ExpertGrid grid, std::uint64_t slots) {
  if (slots == 0) return nullptr;
  const auto most = static_cast<std::uint64_t>(grid.Count());
  CacheShape shape{.grid = grid, .slots = static_cast<std::uint32_t>(std::min(slots, most))};
  return std::make_unique<ExpertCache>(std::move(shape), std::make_unique<Lru>(grid));
}

}  // namespace

OffloadWork::OffloadWork(const PlacementProblem& problem, const ServingCosts& costs)
    : problem_(problem), costs_(costs), first_device_(1, 0) {
  const ExpertGrid grid = GridOf(problem.experts);
  const std::uint64_t slot = SlotBytes(problem.experts);
  for (const PlacementServer& server : problem.servers) {
    for (const PlacementDevice& device : server.devices) {
      devices_.push_back({.cache = MakeCache(grid, device.memory / slot),
                          .speed = device.speed,
                          .load_bytes_per_second = device.load_bytes_per_second});
    }
    first_device_.push_back(static_cast<DeviceIndex>(devices_.size()));
  }
  count_.assign(grid.experts, 0);
}

bool OffloadWork::BringIn(Device& device, ExpertId id, std::uint32_t tokens) {
  if (device.cache == nullptr) return true;
  if (device.cache->Ask(id, tokens) == Residence::kResident) return false;
  TROUPE_CHECK(device.cache->Admit(id).has_value());  // nothing is pinned
  device.cache->OnLoaded(id);
  return true;
}

const OffloadWork::Layer& OffloadWork::Divide(const RoutingTrace& trace, std::uint32_t first,
                                              std::uint32_t tokens, std::uint32_t layer,
                                              std::uint32_t server) {
  std::uint32_t token = first % trace.tokens;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    for (const std::uint16_t id : trace.Chosen(layer, token)) ++count_[id];
    if (++token == trace.tokens) token = 0;
  }
  const DeviceIndex begin = first_device_[server], end = first_device_[server + 1];
  layer_ = {};
  for (DeviceIndex d = begin; d < end; ++d) layer_.jobs.push_back({d, 0});
  for (std::uint32_t id = 0; id < problem_.experts.CountIn(layer); ++id) {
    if (count_[id] == 0) continue;
    DeviceJob& job = layer_.jobs[id % layer_.jobs.size()];
    Device& device = devices_[job.device];
    if (BringIn(device, {layer, id}, count_[id])) {
      const std::uint64_t bytes = problem_.experts.BytesOf(problem_.experts.FirstOf(layer) + id);
      job.seconds += static_cast<double>(bytes) / device.load_bytes_per_second;
      layer_.misses += count_[id];
    } else {
      layer_.hits += count_[id];
    }
    job.seconds += costs_.expert(count_[id]) / device.speed;
    count_[id] = 0;
  }
  std::erase_if(layer_.jobs, [](const DeviceJob& job) { return job.seconds == 0; });
  return layer_;
}

}  // namespace troupe
