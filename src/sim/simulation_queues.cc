// Where a prompt waits and who works on it: its users' server, or another one while that is lost.
#include <optional>
#include <utility>

#include "sim/simulation_run.h"

namespace troupe {

void SimulationRun::DrawArrival(std::uint32_t server) {
  if (drawn_ == setup_.workload.prompts) return;
  servers_[server].coming = servers_[server].arrivals.Next();
  if (!servers_[server].coming) return;
  ++coming_;
  events_.Add(servers_[server].coming->seconds, kArrival, server);
}

void SimulationRun::Arrive(std::uint32_t server) {
  --coming_;
  // The last ones to come are the earliest, whichever server they come to.
  if (drawn_ == setup_.workload.prompts) return;
  ++drawn_;
  ++arrived_;
  const Waiting waiting{.request = *servers_[server].coming, .users = server};
  DrawArrival(server);
  Enqueue(waiting);
}

void SimulationRun::Enqueue(const Waiting& waiting) {
  const std::uint32_t worker = WorkerFor(waiting.users);
  servers_[worker].waiting.push_back(waiting);
  StartWaiting(worker);
}

std::uint32_t SimulationRun::WorkerFor(std::uint32_t users) const {
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

void SimulationRun::Lose(std::uint32_t n) {
  if (!losses_.Lose(n)) {
    spared_ = n;
    return;
  }
  events_.Add(events_.now() + losses_.setup().notice_seconds, kLossNoticed, n);
  events_.Add(events_.now() + losses_.setup().away_seconds, kReturn, n);
  servers_[n].active = 0;
  if (!own_.empty()) EndLife(n);
  for (const Waiting& waiting : std::exchange(servers_[n].waiting, {})) Enqueue(waiting);
}

void SimulationRun::Return(std::uint32_t n) {
  losses_.Return(n);
  map_.Regain(n);
  devices_.Forget(n, events_.now());
  if (!own_.empty()) BeginLife(n);
  events_.Add(events_.now() + losses_.NextUpSeconds(n), kLoss, n);
  if (const auto spared = std::exchange(spared_, std::nullopt)) {
    events_.Add(events_.now() + losses_.NextUpSeconds(*spared), kLoss, *spared);
  }
}

bool SimulationRun::BeganAgain(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  if (losses_.LifeOf(prompt.server) == prompt.life) return false;
  ++result_.begun_again;
  const Waiting waiting{.request = prompt.request, .users = prompt.users, .again = true};
  prompts_.Give(id);
  Enqueue(waiting);
  return true;
}

void SimulationRun::StartWaiting(std::uint32_t n) {
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
  prompt.device = devices_.Idlest(n);
  StartPass(id, prompt.request.input_tokens);
}

}  // namespace troupe
