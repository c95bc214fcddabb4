#include "sim/simulation.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

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
  kUnanswered,     // subject: call, whose host was lost
  kMigrationTime,  // the interval is over
  kMigrationLoad,  // an expert has been loaded
  kLoss,           // subject: server
  kLossNoticed,    // subject: server
  kReturn,         // subject: server
};

struct Prompt {
  PromptRequest request;
  std::uint32_t server = 0;  // that works on it
  std::uint32_t users = 0;   // server whose users ask
  std::uint32_t life = 0;    // of the server, when it began
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
  std::uint32_t life = 0;   // of the host, when it was called
  double disk_seconds = 0;  // that its experts take to be read at home
  double own_seconds = 0;   // and then to be computed
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
    bool again = false;       // its server was lost
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
  void Lose(std::uint32_t server);
  void Return(std::uint32_t server);
  // Whether the server that worked on it was lost since; then it begins again elsewhere.
  bool BeganAgain(std::uint32_t id);
  std::uint32_t WorkerFor(std::uint32_t users) const;
  void StartWaiting(std::uint32_t server);
  void StartPass(std::uint32_t id, std::uint32_t tokens);
  void StartLayer(std::uint32_t id);
  void StartExperts(std::uint32_t id);
  void StartAlone(std::uint32_t id);
  void StartCall(std::uint32_t prompt, const ExpertWork::Visit& visit);
  void StartFromDisk(std::uint32_t prompt, const ExpertWork::Visit& visit);
  bool HostIsLost(const Call& call) const { return losses_.LifeOf(call.host) != call.life; }
  void WaitInVain(std::uint32_t id);
  double DiskSeconds(const ExpertWork::Visit& visit, DeviceIndex device) const {
    return static_cast<double>(visit.bytes) / load_speeds_[device];
  }
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
  Losses losses_;
  std::optional<std::uint32_t> spared_;  // as it was the last one; it may be lost again later
  std::vector<Server> servers_;
  std::vector<Device> devices_;
  std::vector<double> speeds_, load_speeds_;
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
      losses_(setup.losses, setup.problem.server_count(), setup.seed),
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
      load_speeds_.push_back(device.load_bytes_per_second);
    }
  }
}

Result<SimulationResult> Simulation::Run() && {
  for (std::uint32_t n = 0; n < servers_.size(); ++n) DrawArrival(n);
  for (std::uint32_t n = 0; losses_.enabled() && n < servers_.size(); ++n) {
    events_.Add(losses_.NextUpSeconds(n), kLoss, n);
  }
  if (migrator_.enabled()) events_.Add(setup_.migration.interval_s, kMigrationTime, 0);
  while (!events_.empty() && !AllAnswered()) {
    Handle(events_.Take());
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
      if (HostIsLost(call)) return WaitInVain(event.subject);
      call.returning = true;
      return StartTransfer(call.host, prompts_[call.prompt].server, call.bytes_back, event.subject);
    }
    case kUnanswered: {
      const Call& call = calls_[event.subject];
      const std::uint32_t prompt = call.prompt;
      events_.Add(Occupy(prompts_[prompt].device, call.disk_seconds + call.own_seconds),
                  kLocalJobDone, prompt);
      return calls_.Give(event.subject);
    }
    case kLoss:
      return Lose(event.subject);
    case kLossNoticed:
      return map_.Lose(event.subject);
    case kReturn:
      return Return(event.subject);
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
  if (losses_.Up(users) && setup_.serving != Serving::kAloneRedirected) return users;
  const auto load = [&](std::uint32_t n) {
    return servers_[n].waiting.size() + servers_[n].active;
  };
  std::optional<std::uint32_t> idlest;
  if (losses_.Up(users)) idlest = users;
  for (std::uint32_t n = 0; n < servers_.size(); ++n) {
    if (losses_.Up(n) && (!idlest || load(n) < load(*idlest))) idlest = n;
  }
  return idlest.value();
}

void Simulation::Lose(std::uint32_t n) {
  if (!losses_.Lose(n)) {
    spared_ = n;
    return;
  }
  events_.Add(events_.now() + losses_.setup().notice_seconds, kLossNoticed, n);
  events_.Add(events_.now() + losses_.setup().away_seconds, kReturn, n);
  servers_[n].active = 0;
  for (const Waiting& waiting : std::exchange(servers_[n].waiting, {})) {
    const std::uint32_t worker = WorkerFor(waiting.users);
    servers_[worker].waiting.push_back(waiting);
    StartWaiting(worker);
  }
}

void Simulation::Return(std::uint32_t n) {
  losses_.Return(n);
  map_.Regain(n);
  for (DeviceIndex d = map_.FirstDevice(n); d < map_.FirstDevice(n + 1); ++d) {
    devices_[d].free_at = events_.now();
  }
  events_.Add(events_.now() + losses_.NextUpSeconds(n), kLoss, n);
  if (const auto spared = std::exchange(spared_, std::nullopt)) {
    events_.Add(events_.now() + losses_.NextUpSeconds(*spared), kLoss, *spared);
  }
}

bool Simulation::BeganAgain(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  if (losses_.LifeOf(prompt.server) == prompt.life) return false;
  ++result_.begun_again;
  const std::uint32_t worker = WorkerFor(prompt.users);
  servers_[worker].waiting.push_back({prompt.request, prompt.users, true});
  prompts_.Give(id);
  StartWaiting(worker);
  return true;
}

void Simulation::StartWaiting(std::uint32_t n) {
  Server& server = servers_[n];
  if (server.waiting.empty() || server.active == setup_.prompts_at_once) return;
  ++server.active;
  const std::uint32_t id = prompts_.Take();
  Prompt& prompt = prompts_[id];
  prompt = {.request = server.waiting.front().request,
            .server = n,
            .users = server.waiting.front().users,
            .life = losses_.LifeOf(n)};
  if (!server.waiting.front().again) {
    result_.servers[prompt.users].wait.Note(events_.now() - prompt.request.seconds);
  }
  server.waiting.pop_front();
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
  if (BeganAgain(id)) return;
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
    if (visit.host == ExpertWork::kDisk) {
      server.loaded += visit.assignments;
      sample.remote += visit.assignments;
      ++prompt.outstanding;
      StartFromDisk(id, visit);
      continue;
    }
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
  call.life = losses_.LifeOf(visit.host);
  call.disk_seconds = DiskSeconds(visit, prompts_[prompt].device);
  call.own_seconds = visit.seconds / speeds_[prompts_[prompt].device];
  call.began = events_.now();
  call.bytes_there = visit.tokens * setup_.costs.bytes_per_token;
  call.bytes_back = setup_.costs.BytesBack(visit.assignments);
  call.jobs.assign(visit.jobs.begin(), visit.jobs.end());
  if (!losses_.Up(visit.host)) return WaitInVain(id);  // and nobody knows yet
  StartTransfer(prompts_[prompt].server, visit.host, call.bytes_there, id);
}

void Simulation::StartFromDisk(std::uint32_t id, const ExpertWork::Visit& visit) {
  const DeviceIndex device = prompts_[id].device;
  const double seconds = DiskSeconds(visit, device) + visit.seconds / speeds_[device];
  events_.Add(Occupy(device, seconds), kLocalJobDone, id);
}

// A caller is patient for as long as its own disk would take, and then reads.
void Simulation::WaitInVain(std::uint32_t id) {
  const Call& call = calls_[id];
  ++result_.unanswered_calls;
  events_.Add(std::max(events_.now(), call.began + call.disk_seconds), kUnanswered, id);
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
    if (HostIsLost(call)) return WaitInVain(id);
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
  if (BeganAgain(id)) return;
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
