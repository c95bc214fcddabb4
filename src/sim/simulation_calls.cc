// Calls of experts on other servers: over the link, through their devices and back, or in vain.
#include <algorithm>

#include "sim/simulation_run.h"

namespace troupe {

void SimulationRun::StartCall(std::uint32_t prompt, const ExpertWork::Visit& visit,
                              OwnExperts::Call own) {
  const std::uint32_t id = calls_.Take();
  Call& call = calls_[id];
  call.prompt = prompt;
  call.host = visit.host;
  call.home = prompts_[prompt].server;
  call.assignments = visit.assignments;
  call.returning = false;
  call.moves = false;
  call.life = losses_.LifeOf(visit.host);
  call.home_life = losses_.LifeOf(call.home);
  call.own = std::move(own);
  const DeviceIndex device = prompts_[prompt].device;
  call.disk_seconds = devices_.LoadSeconds(device, visit.bytes);
  call.own_seconds = visit.seconds / devices_.speed(device);
  call.began = events_.now();
  call.bytes_there = visit.tokens * setup_.costs.bytes_per_token;
  call.bytes_back = setup_.costs.BytesBack(visit.assignments);
  call.jobs.assign(visit.jobs.begin(), visit.jobs.end());
  if (losses_.Up(visit.host)) {
    StartTransfer(call.home, visit.host, call.bytes_there, id);
  } else {
    WaitInVain(id);  // nobody knows yet
  }
}

void SimulationRun::StartTransfer(std::uint32_t from, std::uint32_t to, double bytes,
                                  std::uint32_t call) {
  result_.servers[from].bytes_sent += bytes;
  calls_[call].links = 1;
  StartOnLink(links_.Acquire(from, to), bytes, call);
  if (const auto ingress = links_.AcquireIngress(to)) {
    ++calls_[call].links;
    StartOnLink(*ingress, bytes, call);
  }
}

void SimulationRun::StartOnLink(std::uint32_t id, double bytes, std::uint32_t call) {
  SharedLink& link = links_[id];
  link.Start(events_.now(), bytes, call);
  events_.Add(link.NextEnd(), kTransferEnd, id, link.version());
}

void SimulationRun::EndTransfer(std::uint32_t id, std::uint32_t version) {
  SharedLink& link = links_[id];
  if (link.version() != version) {  // others came or went since this was computed
    ++stale_;
    return;
  }
  const std::uint32_t ended = link.End(events_.now());
  if (!link.idle()) events_.Add(link.NextEnd(), kTransferEnd, id, link.version());
  links_.ReleaseIfIdle(id);
  Call& call = calls_[ended];
  if (--call.links > 0) return;
  if (call.moves) {
    return events_.Add(events_.now() + links_.Latency(call.home, call.host), kFetched, ended);
  }
  const double arrives =
      events_.now() + (call.returning ? links_.Latency(call.host, call.home)
                                      : links_.Latency(call.home, call.host) +
                                            setup_.costs.call(call.bytes_there + call.bytes_back));
  events_.Add(arrives, kDelivered, ended);
}

void SimulationRun::Deliver(std::uint32_t id) {
  Call& call = calls_[id];
  if (!call.returning) {
    if (HostIsLost(call)) return WaitInVain(id);
    if (DropsUnwanted(id)) return;
    call.outstanding = static_cast<std::uint32_t>(call.jobs.size());
    for (const DeviceJob& job : call.jobs) {
      const double ends = Occupy(job.device, job.seconds);
      call.times.computed = job.seconds;
      call.times.waited = ends - job.seconds - events_.now();
      events_.Add(ends, kCallJobDone, id);
    }
    return;
  }
  if (!own_.empty()) return EndOwnCall(id);
  migrator_.NoteRemote(events_.now() - call.began, call.assignments);
  const std::uint32_t prompt = call.prompt;
  calls_.Give(id);
  EndPart(prompt);
}

void SimulationRun::EndCallJob(std::uint32_t id) {
  Call& call = calls_[id];
  if (--call.outstanding > 0) return;
  if (HostIsLost(call)) return WaitInVain(id);
  if (DropsUnwanted(id)) return;
  call.returning = true;
  StartTransfer(call.host, call.home, call.bytes_back, id);
}

// A caller is patient for as long as its own disk would take, and then reads. One with a disk of
// its own has its rules for what is late.
void SimulationRun::WaitInVain(std::uint32_t id) {
  const Call& call = calls_[id];
  ++result_.unanswered_calls;
  if (!own_.empty()) return calls_.Give(id);
  events_.Add(std::max(events_.now(), call.began + call.disk_seconds), kUnanswered, id);
}

void SimulationRun::ReadInstead(std::uint32_t id) {
  const Call& call = calls_[id];
  const std::uint32_t prompt = call.prompt;
  events_.Add(Occupy(prompts_[prompt].device, call.disk_seconds + call.own_seconds), kLocalJobDone,
              prompt);
  calls_.Give(id);
}

}  // namespace troupe
