#include "sim/simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

#include "sim/arrivals.h"
#include "sim/event_queue.h"
#include "sim/expert_work.h"
#include "sim/link_pool.h"
#include "sim/migrator.h"
#include "sim/offload_work.h"
#include "sim/pool.h"
#include "sim/timeline.h"

namespace troupe {
namespace {

enum EventKind : std::uint32_t {
  kArrival,        // subject: server
  kDenseDone,      // subject: prompt
  kLocalJobDone,   // subject: prompt
  kTransferEnd,    // subject: link, detail: its version when this was computed
  kDelivered,      // subject: call
  kCallJobDone,    // subject: call
  kMigrationTime,  // the interval is over
  kMigrationLoad,  // an expert has been loaded
};

struct Prompt {
  PromptRequest request;
  std::uint32_t server = 0;  // that works on it
  std::uint32_t users = 0;   // server whose users ask
  DeviceIndex device = 0;    // of the dense part
  std::uint32_t tokens = 0;  // of the pass under way
  std::uint32_t passed = 0;  // tokens of earlier passes
  std::uint32_t layer = 0;
  std::uint32_t outstanding = 0;  // jobs and calls of the layer
  double layer_began = 0;
};

struct Call {
  std::uint32_t prompt = 0;
  std::uint32_t host = 0;
  std::uint32_t outstanding = 0;
  std::uint32_t assignments = 0;
  bool returning = false;
  double began = 0;
  double bytes_there = 0, bytes_back = 0;
  std::vector<DeviceJob> jobs;
};

class Simulation {
 public:
  explicit Simulation(const SimulationSetup& setup);
  Result<SimulationResult> Run() &&;

 private:
  struct Waiting {
    PromptRequest request;
    std::uint32_t users = 0;  // server whose users ask
  };
  struct Server {
    std::deque<Waiting> waiting;
    std::uint32_t active = 0;
    std::optional<PromptRequest> coming;
    Arrivals arrivals;
  };
  struct Device {
    double free_at = 0;
    double busy = 0;
  };

  void Handle(const SimEvent& event);
  void DrawArrival(std::uint32_t server);
  void Arrive(std::uint32_t server);
  std::uint32_t WorkerFor(std::uint32_t users) const;
  void StartWaiting(std::uint32_t server);
  void StartPass(std::uint32_t id, std::uint32_t tokens);
  void StartLayer(std::uint32_t id);
  void StartExperts(std::uint32_t id);
  void StartAlone(std::uint32_t id);
  void StartCall(std::uint32_t prompt, const ExpertWork::Visit& visit);
  void StartTransfer(std::uint32_t from, std::uint32_t to, double bytes, std::uint32_t call);
  void EndTransfer(std::uint32_t link, std::uint32_t version);
  void Deliver(std::uint32_t id);
  void EndPart(std::uint32_t id);
  void EndLayer(std::uint32_t id);
  void Finish(std::uint32_t id);
  // When the device will have done `seconds` of work that comes now.
  double Occupy(DeviceIndex device, double seconds);
  TimelineSample& Sample() { return timeline_.At(events_.now()); }
  bool AllAnswered() const { return answered_ == arrived_ && coming_ == 0; }

  const SimulationSetup& setup_;
  EventQueue events_;
  ExpertMap map_;
  ExpertWork work_;
  std::optional<OffloadWork> offload_;  // if servers work alone
  LinkPool links_;
  Migrator migrator_;
  std::vector<Server> servers_;
  std::vector<Device> devices_;
  std::vector<double> speeds_;
  Pool<Prompt> prompts_;
  Pool<Call> calls_;
  SimulationResult result_;
  Timeline timeline_;
  std::uint64_t drawn_ = 0, arrived_ = 0, answered_ = 0, coming_ = 0, stale_ = 0;
};

Simulation::Simulation(const SimulationSetup& setup)
    : setup_(setup),
      map_(setup.problem, setup.placement),
      work_(setup.problem, setup.costs),
      links_(setup.problem.links, setup.sharing, setup.problem.server_count()),
      migrator_(setup.problem, setup.placement, setup.migration),
      devices_(map_.devices()),
      timeline_(setup.sample_interval_s) {
  result_.servers.resize(setup.problem.server_count());
  if (setup.serving != Serving::kTogether) offload_.emplace(setup.problem, setup.costs);
  servers_.reserve(setup.problem.server_count());
  for (std::uint32_t n = 0; n < setup.problem.server_count(); ++n) {
    servers_.push_back({.arrivals = Arrivals(setup.workload.users[n], setup.workload, setup.traces,
                                             setup.seed * 1'000'003 + n)});
    for (const PlacementDevice& device : setup.problem.servers[n].devices) {
      speeds_.push_back(device.speed);
    }
  }
}

Result<SimulationResult> Simulation::Run() && {
  for (std::uint32_t n = 0; n < servers_.size(); ++n) DrawArrival(n);
  if (migrator_.enabled()) events_.Add(setup_.migration.interval_s, kMigrationTime, 0);
  while (!events_.empty() && !AllAnswered()) {
    Handle(events_.Take());
    TROUPE_RETURN_IF_ERROR(migrator_.status());
    result_.most_links = links_.size();
    result_.most_in_flight = std::max<std::uint64_t>(
        result_.most_in_flight, events_.size() + calls_.used() + arrived_ - answered_);
  }
  result_.events = events_.handled() - stale_;
  result_.migrations = migrator_.records();
  result_.timeline = std::move(timeline_).Take();
  result_.seconds_per_remote_call = migrator_.SecondsPerRemoteCall();
  for (std::uint32_t n = 0; n < servers_.size(); ++n) {
    for (DeviceIndex d = map_.FirstDevice(n); d < map_.FirstDevice(n + 1); ++d) {
      result_.servers[n].busy_seconds += devices_[d].busy;
    }
  }
  return std::move(result_);
}

void Simulation::Handle(const SimEvent& event) {
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
    case kCallJobDone: {
      Call& call = calls_[event.subject];
      if (--call.outstanding > 0) return;
      call.returning = true;
      return StartTransfer(call.host, prompts_[call.prompt].server, call.bytes_back, event.subject);
    }
    case kMigrationTime:
      events_.Add(events_.now() + setup_.migration.interval_s, kMigrationTime, 0);
      if (const auto load = migrator_.Consider(events_.now(), map_)) {
        events_.Add(events_.now() + *load, kMigrationLoad, 0);
      }
      return;
    case kMigrationLoad:
      if (const auto load = migrator_.Loaded(events_.now(), map_)) {
        events_.Add(events_.now() + *load, kMigrationLoad, 0);
      }
      return;
    default:
      TROUPE_CHECK(false);
  }
}

void Simulation::DrawArrival(std::uint32_t server) {
  if (drawn_ == setup_.workload.prompts) return;
  servers_[server].coming = servers_[server].arrivals.Next();
  if (!servers_[server].coming) return;
  ++coming_;
  events_.Add(servers_[server].coming->seconds, kArrival, server);
}

void Simulation::Arrive(std::uint32_t server) {
  --coming_;
  // The last ones to come are the earliest, whichever server they come to.
  if (drawn_ == setup_.workload.prompts) return;
  ++drawn_;
  ++arrived_;
  const std::uint32_t worker = WorkerFor(server);
  servers_[worker].waiting.push_back({*servers_[server].coming, server});
  DrawArrival(server);
  StartWaiting(worker);
}

std::uint32_t Simulation::WorkerFor(std::uint32_t users) const {
  if (setup_.serving != Serving::kAloneRedirected) return users;
  const auto load = [&](std::uint32_t n) {
    return servers_[n].waiting.size() + servers_[n].active;
  };
  std::uint32_t idlest = users;
  for (std::uint32_t n = 0; n < servers_.size(); ++n) {
    if (load(n) < load(idlest)) idlest = n;
  }
  return idlest;
}

void Simulation::StartWaiting(std::uint32_t n) {
  Server& server = servers_[n];
  if (server.waiting.empty() || server.active == setup_.prompts_at_once) return;
  ++server.active;
  const std::uint32_t id = prompts_.Take();
  Prompt& prompt = prompts_[id];
  prompt = {.request = server.waiting.front().request,
            .server = n,
            .users = server.waiting.front().users};
  server.waiting.pop_front();
  result_.servers[prompt.users].wait.Note(events_.now() - prompt.request.seconds);
  const auto first = devices_.begin() + map_.FirstDevice(n);
  const auto last = devices_.begin() + map_.FirstDevice(n + 1);
  const auto idlest = std::min_element(
      first, last, [](const Device& a, const Device& b) { return a.free_at < b.free_at; });
  prompt.device = static_cast<DeviceIndex>(idlest - devices_.begin());
  StartPass(id, prompt.request.input_tokens);
}

void Simulation::StartPass(std::uint32_t id, std::uint32_t tokens) {
  prompts_[id].tokens = tokens;
  prompts_[id].layer = 0;
  StartLayer(id);
}

double Simulation::Occupy(DeviceIndex device, double seconds) {
  Device& at = devices_[device];
  at.free_at = std::max(at.free_at, events_.now()) + seconds;
  at.busy += seconds;
  return at.free_at;
}

void Simulation::StartLayer(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  const double seconds = setup_.costs.dense(prompt.tokens) / speeds_[prompt.device];
  events_.Add(Occupy(prompt.device, seconds), kDenseDone, id);
}

void Simulation::StartExperts(std::uint32_t id) {
  Prompt& prompt = prompts_[id];
  prompt.layer_began = events_.now();
  prompt.outstanding = 0;
  if (setup_.serving != Serving::kTogether) return StartAlone(id);
  const std::span<const ExpertWork::Visit> visits = work_.Divide(
      setup_.traces[prompt.request.trace], prompt.request.first_token + prompt.passed,
      prompt.tokens, prompt.layer, prompt.server, map_, migrator_.CountsOf(prompt.server));
  ServerResult& server = result_.servers[prompt.server];
  TimelineSample& sample = Sample();
  for (const ExpertWork::Visit& visit : visits) {
    if (visit.host != prompt.server) {
      server.remote += visit.assignments;
      sample.remote += visit.assignments;
      ++prompt.outstanding;
      StartCall(id, visit);
      continue;
    }
    server.local += visit.assignments;
    sample.local += visit.assignments;
    migrator_.NoteLocalAssignments(visit.assignments, visit.jobs.size());
    for (const DeviceJob& job : visit.jobs) {
      ++prompt.outstanding;
      events_.Add(Occupy(job.device, job.seconds), kLocalJobDone, id);
    }
  }
}

void Simulation::StartAlone(std::uint32_t id) {
  Prompt& prompt = prompts_[id];
  const OffloadWork::Layer& layer = offload_->Divide(setup_.traces[prompt.request.trace],
                                                     prompt.request.first_token + prompt.passed,
                                                     prompt.tokens, prompt.layer, prompt.server);
  result_.servers[prompt.users].local += layer.hits;
  result_.servers[prompt.users].loaded += layer.misses;
  TimelineSample& sample = Sample();
  sample.local += layer.hits;
  sample.remote += layer.misses;
  for (const DeviceJob& job : layer.jobs) {
    ++prompt.outstanding;
    events_.Add(Occupy(job.device, job.seconds), kLocalJobDone, id);
  }
}

void Simulation::StartCall(std::uint32_t prompt, const ExpertWork::Visit& visit) {
  const std::uint32_t id = calls_.Take();
  Call& call = calls_[id];
  call.prompt = prompt;
  call.host = visit.host;
  call.assignments = visit.assignments;
  call.returning = false;
  call.began = events_.now();
  call.bytes_there = visit.tokens * setup_.costs.bytes_per_token;
  call.bytes_back = setup_.costs.BytesBack(visit.assignments);
  call.jobs.assign(visit.jobs.begin(), visit.jobs.end());
  StartTransfer(prompts_[prompt].server, visit.host, call.bytes_there, id);
}

void Simulation::StartTransfer(std::uint32_t from, std::uint32_t to, double bytes,
                               std::uint32_t call) {
  result_.servers[from].bytes_sent += bytes;
  const std::uint32_t id = links_.Acquire(from, to);
  SharedLink& link = links_[id];
  link.Start(events_.now(), bytes, call);
  events_.Add(link.NextEnd(), kTransferEnd, id, link.version());
}

void Simulation::EndTransfer(std::uint32_t id, std::uint32_t version) {
  SharedLink& link = links_[id];
  if (link.version() != version) {  // others came or went since this was computed
    ++stale_;
    return;
  }
  const std::uint32_t ended = link.End(events_.now());
  if (!link.idle()) events_.Add(link.NextEnd(), kTransferEnd, id, link.version());
  links_.ReleaseIfIdle(id);
  const Call& call = calls_[ended];
  const std::uint32_t home = prompts_[call.prompt].server;
  const double arrives =
      events_.now() + (call.returning ? links_.Latency(call.host, home)
                                      : links_.Latency(home, call.host) +
                                            setup_.costs.call(call.bytes_there + call.bytes_back));
  events_.Add(arrives, kDelivered, ended);
}

void Simulation::Deliver(std::uint32_t id) {
  Call& call = calls_[id];
  if (!call.returning) {
    call.outstanding = static_cast<std::uint32_t>(call.jobs.size());
    for (const DeviceJob& job : call.jobs) {
      events_.Add(Occupy(job.device, job.seconds), kCallJobDone, id);
    }
    return;
  }
  migrator_.NoteRemote(events_.now() - call.began, call.assignments);
  const std::uint32_t prompt = call.prompt;
  calls_.Give(id);
  EndPart(prompt);
}

void Simulation::EndPart(std::uint32_t id) {
  if (--prompts_[id].outstanding == 0) EndLayer(id);
}

void Simulation::EndLayer(std::uint32_t id) {
  Prompt& prompt = prompts_[id];
  if (++prompt.layer < setup_.problem.experts.layers()) return StartLayer(id);
  prompt.passed += prompt.tokens;
  // The first token of the answer comes out of the pass that read the input.
  const std::uint32_t answered = prompt.passed - prompt.request.input_tokens + 1;
  if (answered < prompt.request.output_tokens) return StartPass(id, 1);
  Finish(id);
}

void Simulation::Finish(std::uint32_t id) {
  const std::uint32_t server = prompts_[id].server, users = prompts_[id].users;
  const double latency = events_.now() - prompts_[id].request.seconds;
  prompts_.Give(id);
  result_.servers[users].latency.Note(latency);
  result_.latency.Note(latency);
  TimelineSample& sample = Sample();
  ++sample.answered;
  sample.latency_sum += latency;
  ++answered_;
  result_.seconds = events_.now();
  --servers_[server].active;
  StartWaiting(server);
}

}  // namespace

Result<SimulationResult> Simulate(const SimulationSetup& setup) { return Simulation(setup).Run(); }

}  // namespace troupe
