#include "sim/expert_work.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

}  // namespace

ExpertMap::ExpertMap(const PlacementProblem& problem, const Placement& placement)
    : experts_(problem.experts.size()),
      first_device_(1, 0),
      local_(static_cast<std::size_t>(problem.server_count()) * experts_, 0),
      holders_(problem, placement),
      routes_(problem, holders_),
      lost_(problem.server_count()) {
  for (std::uint32_t n = 0; n < problem.server_count(); ++n) {
    const auto devices = static_cast<DeviceIndex>(problem.servers[n].devices.size());
    first_device_.push_back(first_device_.back() + devices);
    for (std::uint32_t d = 0; d < devices; ++d) {
      for (const ExpertIndex e : placement.experts[n][d]) {
        local_[n * experts_ + e] = static_cast<std::uint8_t>(d);
      }
    }
  }
}

void ExpertMap::Load(std::uint32_t server, std::uint32_t device, ExpertIndex e) {
  local_[server * experts_ + e] = static_cast<std::uint8_t>(device);
  if (holders_.Holds(server, e)) return;  // it moves within the server
  holders_.Add(server, e);
  routes_.Renew(e, holders_);
}

void ExpertMap::Drop(std::uint32_t server, std::uint32_t device, ExpertIndex e) {
  // The copy on another device of the server, which took its place, stays.
  if (local_[server * experts_ + e] != device) return;
  holders_.Remove(server, e);
  routes_.Renew(e, holders_);
}

void ExpertMap::Lose(std::uint32_t server) {
  lost_[server] = holders_.On(server);
  for (const ExpertIndex e : lost_[server]) {
    holders_.Remove(server, e);
    routes_.Renew(e, holders_);
  }
}

void ExpertMap::Regain(std::uint32_t server) {
  for (const ExpertIndex e : std::exchange(lost_[server], {})) {
    holders_.Add(server, e);
    routes_.Renew(e, holders_);
  }
}

ExpertWork::ExpertWork(const PlacementProblem& problem, const ServingCosts& costs)
    : problem_(problem),
      costs_(costs),
      visit_of_(problem.server_count() + 1, kNone),
      last_token_(problem.server_count() + 1, 0) {
  std::uint32_t most = 0;
  for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
    most = std::max(most, problem.experts.CountIn(l));
  }
  count_.assign(most, 0);
  for (const PlacementServer& server : problem.servers) {
    for (const PlacementDevice& device : server.devices) speeds_.push_back(device.speed);
  }
}

std::uint32_t ExpertWork::VisitOf(std::uint32_t host) {
  std::uint32_t& visit = visit_of_[PlaceOf(host)];
  if (visit != kNone) return visit;
  visit = static_cast<std::uint32_t>(used_++);
  if (visits_.size() < used_) visits_.emplace_back();
  Visit& fresh = visits_[visit];
  fresh.host = host;
  fresh.tokens = fresh.assignments = 0;
  fresh.jobs.clear();
  fresh.bytes = 0;
  fresh.seconds = 0;
  return visit;
}

void ExpertWork::AddJob(DeviceIndex device, double work, Visit& visit) const {
  const double seconds = work / speeds_[device];
  const auto job = std::find_if(visit.jobs.begin(), visit.jobs.end(),
                                [&](const DeviceJob& other) { return other.device == device; });
  if (job == visit.jobs.end()) {
    visit.jobs.push_back({device, seconds});
  } else {
    job->seconds += seconds;
  }
}

std::span<const ExpertWork::Visit> ExpertWork::Divide(const RoutingTrace& trace,
                                                      std::uint32_t first, std::uint32_t tokens,
                                                      std::uint32_t layer, std::uint32_t server,
                                                      const ExpertMap& map, double* counts) {
  for (std::size_t i = 0; i < used_; ++i) visit_of_[PlaceOf(visits_[i].host)] = kNone;
  used_ = 0;
  const ExpertIndex base = problem_.experts.FirstOf(layer);
  std::uint32_t token = first % trace.tokens;
  for (std::uint32_t t = 0; t < tokens; ++t) {
    ++stamp_;
    for (const std::uint16_t id : trace.Chosen(layer, token)) {
      if (count_[id]++ == 0) touched_.push_back(id);
      const std::uint32_t host = map.routes().HostOf(server, base + id);
      if (last_token_[PlaceOf(host)] == stamp_) continue;
      last_token_[PlaceOf(host)] = stamp_;
      ++visits_[VisitOf(host)].tokens;
    }
    if (++token == trace.tokens) token = 0;
  }
  for (const std::uint32_t id : touched_) {
    const ExpertIndex e = base + id;
    Visit& visit = visits_[VisitOf(map.routes().HostOf(server, e))];
    const double work = costs_.expert(count_[id]);
    visit.bytes += problem_.experts.BytesOf(e);
    visit.seconds += work;
    if (visit.host != kDisk) AddJob(map.DeviceOf(visit.host, e), work, visit);
    visit.assignments += count_[id];
    if (counts != nullptr) counts[e] += count_[id];
    count_[id] = 0;
  }
  touched_.clear();
  return std::span(visits_).first(used_);
}

}  // namespace troupe
