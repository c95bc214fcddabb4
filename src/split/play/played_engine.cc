#include "split/play/played_engine.h"

#include <utility>

namespace troupe {
namespace {

// Of an answer in the mean of what answers take, as in runtime/batch_loop.cc.
constexpr double kNewestAnswer = 0.2;

}  // namespace

PlayedEngine::PlayedEngine(Agenda& agenda, const EngineSetup& setup)
    : agenda_(agenda), setup_(setup), engine_(setup) {}

RequestId PlayedEngine::Start(std::uint32_t prompt, std::uint32_t tokens, PlayedRun run) {
  const RequestId request = ++last_;
  asked_.emplace(request, Asked{.run = std::move(run), .prompt = prompt});
  engine_.Add(request, prompt, tokens);
  // Those that come at the same time go into the same pass.
  agenda_.After(0, [this] { BeginPass(); });
  return request;
}

void PlayedEngine::Stop(RequestId request) {
  const auto asked = asked_.extract(request);
  if (asked.empty()) return;
  unwanted_.insert(request);
  if (asked.mapped().since) NoteTime(*asked.mapped().since);
  ++sums_.cancelled;
}

void PlayedEngine::BeginPass() {
  if (in_pass_) return;
  engine_.DropIf([this](RequestId request) { return unwanted_.contains(request); });
  unwanted_.clear();
  const std::optional<EnginePlay::Pass> pass = engine_.BeginPass();
  if (!pass) return;
  in_pass_ = true;
  for (auto& [request, asked] : asked_) {
    if (!asked.since && engine_.HasBegun(request)) asked.since = agenda_.Now();
  }
  pace_.PassBegins(agenda_.Now());
  busy_seconds_ += pass->seconds;
  agenda_.After(pass->seconds, [this, pass = *pass] { EndPass(pass); });
}

void PlayedEngine::EndPass(const EnginePlay::Pass& pass) {
  in_pass_ = false;
  const std::vector<EnginePlay::Progress> all = engine_.EndPass();
  sums_.prompt_tokens += pass.prompts;
  pace_.PassEnded(pass.prompts, engine_.reading() > 0, agenda_.Now());
  for (const EnginePlay::Progress& done : all) Tell(done);
  BeginPass();
}

void PlayedEngine::Tell(const EnginePlay::Progress& done) {
  const auto asked = asked_.find(done.request);
  if (asked == asked_.end()) return;
  const PlayedRun run = asked->second.run;  // who is told may stop it
  if (!done.has_token)
    return run.on_read(asked->second.prompt - done.prompt_left, asked->second.prompt);
  run.on_token();
  if (!done.ended || !asked_.contains(done.request)) return;
  Finish(done.request);
  run.on_end();
}

void PlayedEngine::Finish(RequestId request) {
  const auto asked = asked_.extract(request);
  NoteTime(*asked.mapped().since);
  ++sums_.finished;
}

void PlayedEngine::NoteTime(Nanos since) {
  const double took = static_cast<double>(agenda_.Now() - since) * 1e-9;
  const double mean = sums_.request_seconds;
  sums_.request_seconds = mean == 0 ? took : mean + kNewestAnswer * (took - mean);
}

BatchCounters PlayedEngine::counters() const {
  BatchCounters now = sums_;
  now.waiting = engine_.waiting();
  now.reading = engine_.reading();
  now.decoding = engine_.decoding();
  now.to_read = engine_.to_read();
  now.read_seconds = pace_.token_seconds();
  now.speed = now.exact_speed = engine_.speed();
  return now;
}

}  // namespace troupe
