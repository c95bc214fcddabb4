#include "sim/offload_work.h"

#include <algorithm>

namespace troupe {

OffloadWork::OffloadWork(const PlacementProblem& problem, const ServingCosts& costs)
    : problem_(problem), costs_(costs), first_device_(1, 0) {
  std::size_t devices = 0;
  for (const PlacementServer& server : problem.servers) devices += server.devices.size();
  devices_.resize(devices);  // lists must not move: iterators point into them
  for (const PlacementServer& server : problem.servers) {
    for (std::size_t d = 0; d < server.devices.size(); ++d) {
      Device& device = devices_[first_device_.back() + d];
      device.memory = server.devices[d].memory;
      device.speed = server.devices[d].speed;
      device.load_bytes_per_second = server.devices[d].load_bytes_per_second;
      device.where.assign(problem.experts.size(), device.by_use.end());
    }
    first_device_.push_back(first_device_.back() + static_cast<DeviceIndex>(server.devices.size()));
  }
  std::uint32_t most = 0;
  for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
    most = std::max(most, problem.experts.CountIn(l));
  }
  count_.assign(most, 0);
}

double OffloadWork::BringIn(Device& device, ExpertIndex e) {
  if (device.where[e] != device.by_use.end()) {
    device.by_use.splice(device.by_use.begin(), device.by_use, device.where[e]);
    return 0;
  }
  const std::uint64_t bytes = problem_.experts.BytesOf(e);
  while (!device.by_use.empty() && device.used + bytes > device.memory) {
    const ExpertIndex gone = device.by_use.back();
    device.used -= problem_.experts.BytesOf(gone);
    device.where[gone] = device.by_use.end();
    device.by_use.pop_back();
  }
  if (device.used + bytes <= device.memory) {  // else it is used on its way through
    device.by_use.push_front(e);
    device.where[e] = device.by_use.begin();
    device.used += bytes;
  }
  return static_cast<double>(bytes) / device.load_bytes_per_second;
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
    const double loading = BringIn(device, problem_.experts.FirstOf(layer) + id);
    (loading > 0 ? layer_.misses : layer_.hits) += count_[id];
    job.seconds += loading + costs_.expert(count_[id]) / device.speed;
    count_[id] = 0;
  }
  std::erase_if(layer_.jobs, [](const DeviceJob& job) { return job.seconds == 0; });
  return layer_;
}

}  // namespace troupe
