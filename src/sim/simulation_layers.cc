// A prompt's passes: in each layer the dense part, then the experts, of which the slowest ends it.
#include <span>

#include "sim/simulation_run.h"

namespace troupe {

void SimulationRun::StartPass(std::uint32_t id, std::uint32_t tokens) {
  prompts_[id].tokens = tokens;
  prompts_[id].layer = 0;
  own_.empty() ? StartLayer(id) : JoinPass(id);
}

void SimulationRun::StartLayer(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  const std::uint32_t tokens =
      own_.empty() ? prompt.tokens : own_[prompt.server].experts->pass().tokens();
  const double ends =
      Occupy(prompt.device, setup_.costs.dense(tokens) / devices_.speed(prompt.device));
  if (own_.empty()) return events_.Add(ends, kDenseDone, id);
  events_.Add(ends, kOwnDense, prompt.server, losses_.LifeOf(prompt.server));
}

void SimulationRun::StartExperts(std::uint32_t id) {
  if (BeganAgain(id)) return;
  Prompt& prompt = prompts_[id];
  prompt.layer_began = events_.now();
  prompt.outstanding = 0;
  if (setup_.serving != Serving::kTogether) return StartAlone(id);
  if (!own_.empty()) return StartOwnExperts(id);
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
    StartJobs(id, visit.jobs);
  }
}

void SimulationRun::StartAlone(std::uint32_t id) {
  const Prompt& prompt = prompts_[id];
  const OffloadWork::Layer& layer = offload_->Divide(setup_.traces[prompt.request.trace],
                                                     prompt.request.first_token + prompt.passed,
                                                     prompt.tokens, prompt.layer, prompt.server);
  result_.servers[prompt.users].local += layer.hits;
  result_.servers[prompt.users].loaded += layer.misses;
  TimelineSample& sample = Sample();
  sample.local += layer.hits;
  sample.remote += layer.misses;
  StartJobs(id, layer.jobs);
}

void SimulationRun::StartJobs(std::uint32_t id, std::span<const DeviceJob> jobs) {
  prompts_[id].outstanding += static_cast<std::uint32_t>(jobs.size());
  for (const DeviceJob& job : jobs) {
    events_.Add(Occupy(job.device, job.seconds), kLocalJobDone, id);
  }
}

void SimulationRun::StartFromDisk(std::uint32_t id, const ExpertWork::Visit& visit) {
  const DeviceIndex device = prompts_[id].device;
  const double seconds =
      devices_.LoadSeconds(device, visit.bytes) + visit.seconds / devices_.speed(device);
  events_.Add(Occupy(device, seconds), kLocalJobDone, id);
}

void SimulationRun::EndPart(std::uint32_t id) {
  if (--prompts_[id].outstanding == 0) EndLayer(id);
}

void SimulationRun::EndLayer(std::uint32_t id) {
  if (BeganAgain(id)) return;
  Prompt& prompt = prompts_[id];
  if (++prompt.layer < setup_.problem.experts.layers()) return StartLayer(id);
  own_.empty() ? EndPass(id) : EndSharedPass(prompt.server);
}

void SimulationRun::EndPass(std::uint32_t id) {
  Prompt& prompt = prompts_[id];
  prompt.passed += prompt.tokens;
  // The first token of the answer comes out of the pass that read the input.
  const std::uint32_t answered = prompt.passed - prompt.request.input_tokens + 1;
  if (answered < prompt.request.output_tokens) return StartPass(id, 1);
  Finish(id);
}

void SimulationRun::Finish(std::uint32_t id) {
  const std::uint32_t server = prompts_[id].server, users = prompts_[id].users;
  const double latency = events_.now() - prompts_[id].request.seconds;
  if (!own_.empty()) own_[server].experts->pass().Leave(id);
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

}  // namespace troupe
