// The run from its first event to its result.
#include "sim/simulation.h"

#include <algorithm>
#include <utility>

#include "sim/simulation_run.h"

namespace troupe {

SimulationRun::SimulationRun(const SimulationSetup& setup)
    : setup_(setup),
      map_(setup.problem, setup.placement),
      work_(setup.problem, setup.costs),
      links_(setup.problem.links, setup.sharing, setup.problem.server_count(),
             setup.shares_ingress),
      migrator_(setup.problem, setup.placement, setup.migration),
      losses_(setup.losses, setup.problem.server_count(), setup.seed),
      devices_(setup.problem),
      timeline_(setup.sample_interval_s) {
  result_.servers.resize(setup.problem.server_count());
  if (setup.serving != Serving::kTogether) offload_.emplace(setup.problem, setup.costs);
  own_.resize(setup.disks.size());
  for (std::uint32_t n = 0; n < own_.size(); ++n) BeginLife(n);
  servers_.reserve(setup.problem.server_count());
  for (std::uint32_t n = 0; n < setup.problem.server_count(); ++n) {
    servers_.push_back({.arrivals = Arrivals(setup.workload.users[n], setup.workload, setup.traces,
                                             setup.seed * 1'000'003 + n)});
  }
}

Result<SimulationResult> SimulationRun::Run(const SimulationProgress& progress) && {
  constexpr std::uint64_t kEventsBetween = 4096;
  for (std::uint32_t n = 0; n < servers_.size(); ++n) DrawArrival(n);
  for (std::uint32_t n = 0; losses_.enabled() && n < servers_.size(); ++n) {
    events_.Add(losses_.NextUpSeconds(n), kLoss, n);
  }
  if (migrator_.enabled()) events_.Add(setup_.migration.interval_s, kMigrationTime, 0);
  while (!events_.empty() && !AllAnswered()) {
    Handle(events_.Take());
    if (progress && events_.handled() % kEventsBetween == 0) progress(events_.now(), answered_);
    TROUPE_RETURN_IF_ERROR(migrator_.status());
    result_.most_links = links_.size();
    result_.most_in_flight = std::max<std::uint64_t>(
        result_.most_in_flight, events_.size() + calls_.used() + arrived_ - answered_);
  }
  result_.events = events_.handled() - stale_;
  result_.losses = losses_.count();
  result_.migrations = migrator_.records();
  result_.timeline = std::move(timeline_).Take();
  result_.seconds_per_remote_call = migrator_.SecondsPerRemoteCall();
  for (std::uint32_t n = 0; n < servers_.size(); ++n) {
    result_.servers[n].busy_seconds = devices_.BusySeconds(n);
    if (own_.empty()) continue;
    if (own_[n].experts != nullptr) own_[n].before += own_[n].experts->Counts();
    result_.servers[n].disk = own_[n].before;
  }
  return std::move(result_);
}

void SimulationRun::Handle(const SimEvent& event) {
  switch (event.kind) {
    case kArrival:
      return Arrive(event.subject);
    case kDenseDone:
      return StartExperts(event.subject);
    case kLocalJobDone:
      migrator_.NoteLocal(events_.now() - prompts_[event.subject].layer_began);
      return EndPart(event.subject);
    case kTransferEnd:
      return EndTransfer(event.subject, static_cast<std::uint32_t>(event.detail));
    case kDelivered:
      return Deliver(event.subject);
    case kCallJobDone:
      return EndCallJob(event.subject);
    case kUnanswered:
      return ReadInstead(event.subject);
    case kLoss:
      return Lose(event.subject);
    case kLossNoticed:
      return TellOfLoss(event.subject);
    case kReturn:
      return Return(event.subject);
    case kOwnDense:
      if (IsOfEarlierLife(event)) return;
      return StartExperts(own_[event.subject].experts->pass().parts().front().prompt);
    case kOwnComputed:
      if (IsOfEarlierLife(event)) return;
      own_[event.subject].experts->OnComputed();
      return GoOn(event.subject);
    case kOwnTime:
      return Wake(event.subject, event.detail);
    case kMigrationTime:
      events_.Add(events_.now() + setup_.migration.interval_s, kMigrationTime, 0);
      return BeginMove(migrator_.Consider(events_.now(), map_));
    case kMigrationLoad:
      return BeginMove(migrator_.Loaded(events_.now(), map_));
    case kFetched:
      return EndFetch(event.subject);
    default:
      TROUPE_CHECK(false);
  }
}

Result<SimulationResult> Simulate(const SimulationSetup& setup,
                                  const SimulationProgress& progress) {
  return SimulationRun(setup).Run(progress);
}

}  // namespace troupe
