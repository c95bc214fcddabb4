// Servers with disks of their own: prompts share passes, and an OwnExperts says who answers each
// expert. Here is what that does to the run's devices, links and clock. A server that is lost loses
// its pass and what its slots hold; it comes back with what the placement gives it.
#include <algorithm>
#include <utility>

#include "sim/simulation_run.h"

namespace troupe {

bool SimulationRun::IsOfEarlierLife(const SimEvent& event) {
  if (event.detail == losses_.LifeOf(event.subject)) return false;
  ++stale_;
  return true;
}

void SimulationRun::BeginLife(std::uint32_t n) {
  own_[n].experts =
      std::make_unique<OwnExperts>(OwnExpertsFacts{.problem = setup_.problem,
                                                   .map = map_,
                                                   .costs = setup_.costs,
                                                   .disk = setup_.disks[n],
                                                   .server = n,
                                                   .prompts_at_once = setup_.prompts_at_once});
}

void SimulationRun::EndLife(std::uint32_t n) {
  Own& own = own_[n];
  for (const std::uint32_t id : own.experts->pass().Prompts()) BeganAgain(id);
  own.before += own.experts->Counts();
  own.experts.reset();
  own.wakes_at = OwnExperts::kNever;
  ++own.alarm;
}

void SimulationRun::TellOfLoss(std::uint32_t lost) {
  map_.Lose(lost);
  for (std::uint32_t n = 0; n < own_.size(); ++n) {
    if (own_[n].experts == nullptr) continue;
    own_[n].experts->OnLost(lost, events_.now());
    GoOn(n);
  }
}

void SimulationRun::JoinPass(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  own_[prompt.server].experts->pass().Join(
      {.prompt = id,
       .trace = &setup_.traces[prompt.request.trace],
       .first = prompt.request.first_token + prompt.passed,
       .tokens = prompt.tokens,
       .phase = prompt.passed == 0 ? Phase::kPrompt : Phase::kDecode,
       .position = prompt.passed});
  StartSharedPass(prompt.server);
}

void SimulationRun::StartSharedPass(std::uint32_t n) {
  OwnExperts& own = *own_[n].experts;
  if (!own.BeginPass(events_.now())) return;
  SetAlarm(n);
  StartLayer(own.pass().parts().front().prompt);
}

void SimulationRun::StartOwnExperts(std::uint32_t id) {
  Prompt& prompt = prompts_[id];
  const OwnExperts::Pairs pairs = own_[prompt.server].experts->Ask(prompt.layer, events_.now());
  ServerResult& server = result_.servers[prompt.server];
  server.local += pairs.local;
  server.remote += pairs.remote;
  server.loaded += pairs.loaded;
  Sample().local += pairs.local;
  Sample().remote += pairs.remote + pairs.loaded;
  GoOn(prompt.server);
}

// What follows from all that has happened to the server's pass.
void SimulationRun::GoOn(std::uint32_t n) {
  OwnExperts& own = *own_[n].experts;
  if (!own.pass().parts().empty()) {
    const std::uint32_t leader = own.pass().parts().front().prompt;
    for (OwnExperts::Call& call : own.TakeCalls(events_.now())) {
      const ExpertWork::Visit visit = call.visit;
      StartCall(leader, visit, std::move(call));
    }
    if (const auto seconds = own.Compute(events_.now())) {
      events_.Add(Occupy(prompts_[leader].device, *seconds), kOwnComputed, n, losses_.LifeOf(n));
    }
    if (own.LayerIsDone()) {
      own.EndLayer(events_.now());
      EndLayer(leader);
    }
  }
  SetAlarm(n);
}

void SimulationRun::SetAlarm(std::uint32_t n) {
  const double next = std::max(own_[n].experts->NextTime(), events_.now());
  if (next >= own_[n].wakes_at) return;
  own_[n].wakes_at = next;
  events_.Add(next, kOwnTime, n, ++own_[n].alarm);
}

void SimulationRun::EndSharedPass(std::uint32_t n) {
  SharedPass& pass = own_[n].experts->pass();
  // They join the next one, which begins once all of them have.
  for (const PassPart& part : pass.parts()) EndPass(part.prompt);
  pass.End();
  StartSharedPass(n);
}

void SimulationRun::EndOwnCall(std::uint32_t id) {
  if (HomeIsLost(calls_[id])) return calls_.Give(id);
  Call& call = calls_[id];
  const std::uint32_t home = call.home;
  call.times.experts = static_cast<std::uint32_t>(call.own.experts.size());
  call.times.rows = call.assignments;
  call.times.seconds = events_.now() - call.began;
  own_[home].experts->OnAnswered(call.own, call.times, events_.now());
  calls_.Give(id);
  GoOn(home);
}

bool SimulationRun::DropsUnwanted(std::uint32_t id) {
  const Call& call = calls_[id];
  if (own_.empty()) return false;
  if (!HomeIsLost(call) && !own_[call.home].experts->TakeCancelled(call.own.id)) return false;
  calls_.Give(id);
  return true;
}

void SimulationRun::Wake(std::uint32_t n, std::uint64_t alarm) {
  if (alarm != own_[n].alarm) {  // another one was set since
    ++stale_;
    return;
  }
  own_[n].wakes_at = OwnExperts::kNever;
  own_[n].experts->Settle(events_.now());
  GoOn(n);
}

}  // namespace troupe
