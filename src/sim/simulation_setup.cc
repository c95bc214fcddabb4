// What a setup has to be before it can be simulated.
#include <fmt/ranges.h>

#include <algorithm>

#include "expert/cache/eviction_policy.h"
#include "sim/simulation.h"

namespace troupe {
namespace {

bool IsAlone(const SimulationSetup& setup) { return setup.serving != Serving::kTogether; }

Status ValidateDisks(const SimulationSetup& setup) {
  if (setup.disks.empty()) return OkStatus();
  if (setup.disks.size() != setup.problem.servers.size()) {
    return InvalidArgument("disks of {} servers, the problem has {}", setup.disks.size(),
                           setup.problem.servers.size());
  }
  if (IsAlone(setup) || setup.migration.interval_s > 0) {
    return InvalidArgument(
        "servers with disks of their own that work alone or migrate, which is not simulated");
  }
  const std::uint32_t a_token = setup.problem.experts_per_token;
  for (std::size_t n = 0; n < setup.disks.size(); ++n) {
    const OwnDisk& disk = setup.disks[n];
    const PlacementServer& server = setup.problem.servers[n];
    if (server.devices.size() != 1) {
      return InvalidArgument("server '{}' has a disk of its own and {} devices, expected one",
                             server.name, server.devices.size());
    }
    if (!(disk.bytes_per_second > 0) || !(disk.latency_seconds >= 0)) {
      return InvalidArgument(
          "server '{}' has a disk of {} bytes/s after {} s, expected a positive speed and no "
          "negative time",
          server.name, disk.bytes_per_second, disk.latency_seconds);
    }
    if (setup.losses.mean_up_seconds > 0 && disk.free_slots < a_token) {
      return InvalidArgument(
          "server '{}' has {} free slots, expected {}, an expert for each that a token takes: what "
          "only a lost server holds is to be read into them",
          server.name, disk.free_slots, a_token);
    }
    const std::vector<std::string> policies = RoutePolicyNames();
    if (std::ranges::find(policies, disk.policy) == policies.end()) {
      return InvalidArgument("server '{}' has slots under the policy '{}', expected one of {}",
                             server.name, disk.policy, fmt::join(policies, ", "));
    }
  }
  return OkStatus();
}

}  // namespace

Status Validate(const SimulationSetup& setup) {
  TROUPE_RETURN_IF_ERROR(Validate(setup.problem));
  TROUPE_RETURN_IF_ERROR(Validate(setup.placement, setup.problem));
  const PlacementProblem& problem = setup.problem;
  if (setup.workload.users.size() != problem.servers.size()) {
    return InvalidArgument("users of {} servers, the problem has {}", setup.workload.users.size(),
                           problem.servers.size());
  }
  for (const PlacementServer& server : problem.servers) {
    if (server.devices.size() > 255) {
      return InvalidArgument("server '{}' has {} devices, at most 255 can be simulated",
                             server.name, server.devices.size());
    }
  }
  if (setup.shares_ingress && setup.sharing != LinkSharing::kEgress) {
    return InvalidArgument("a link for what a server gets, but none for what it sends");
  }
  for (const auto& [pair, link] : problem.links.pairs) {
    if (setup.sharing != LinkSharing::kEgress ||
        link.bytes_per_second == problem.links.usual.bytes_per_second) {
      continue;
    }
    return InvalidArgument(
        "link from server {} to server {}: {} bytes/s, but all that a server sends shares one link "
        "of {}",
        pair.first, pair.second, link.bytes_per_second, problem.links.usual.bytes_per_second);
  }
  if (setup.migration.interval_s < 0 || (setup.migration.interval_s > 0 && IsAlone(setup))) {
    return InvalidArgument(
        "migration every {} s, expected zero or more, and none where servers work alone",
        setup.migration.interval_s);
  }
  const LossSetup& losses = setup.losses;
  if (losses.mean_up_seconds < 0 || losses.notice_seconds < 0 ||
      losses.away_seconds <= losses.notice_seconds) {
    return InvalidArgument(
        "servers are lost after {} s, noticed after {} s and back after {} s, expected none below "
        "zero, and servers to be back after they were noticed",
        losses.mean_up_seconds, losses.notice_seconds, losses.away_seconds);
  }
  if (losses.mean_up_seconds > 0 && setup.migration.interval_s > 0) {
    return InvalidArgument("losses and migration together, which is not simulated");
  }
  TROUPE_RETURN_IF_ERROR(ValidateDisks(setup));
  for (const RoutingTrace& trace : setup.traces) {
    TROUPE_RETURN_IF_ERROR(Validate(trace));
    for (std::uint32_t l = 0; l < problem.experts.layers(); ++l) {
      if (trace.layers != problem.experts.layers() || trace.experts != problem.experts.CountIn(l)) {
        return InvalidArgument("a routing trace of {} layers x {} experts for a model with {} x {}",
                               trace.layers, trace.experts, problem.experts.layers(),
                               problem.experts.CountIn(l));
      }
    }
  }
  for (const ServerUsers& users : setup.workload.users) {
    for (const UserPhase& phase : users.phases) {
      if (phase.trace >= setup.traces.size() || !(phase.mean_interval_s > 0)) {
        return InvalidArgument(
            "users of trace {} every {} s, expected one of {} and a positive time", phase.trace,
            phase.mean_interval_s, setup.traces.size());
      }
    }
    if (users.phases.empty() && !users.recorded.empty()) {
      return InvalidArgument("recorded requests of users without a phase that names their trace");
    }
  }
  if (setup.prompts_at_once == 0 || !(setup.sample_interval_s > 0)) {
    return InvalidArgument("prompts at once and the sampling interval must be positive");
  }
  return OkStatus();
}

}  // namespace troupe
