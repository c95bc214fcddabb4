// What a BatchLoop tells of itself: its counters, and how far each request is.
#include "runtime/batch_loop.h"

namespace troupe {

BatchCounters BatchLoop::counters() const {
  BatchCounters counters = counters_;
  counters.waiting = waiting_.size();
  for (const Active& active : active_) {
    ++(active.generation.phase() == Phase::kPrompt ? counters.reading : counters.decoding);
    counters.to_read += active.generation.prompt_left();
  }
  for (const Waiting& waiting : waiting_) counters.to_read += waiting.request.tokens_to_read();
  counters.read_seconds = pace_.token_seconds();
  counters.speed = meter_.speed();
  counters.exact_speed = exact_meter_.speed();
  counters.request_seconds = request_seconds_;
  counters.prefix_cache = runner_.prefix_cache();
  counters.experts.layers = runner_.layer_hits();  // requests' shares do not tell layers apart
  counters.card = runner_.card();
  return counters;
}

std::vector<RequestState> BatchLoop::Requests(std::size_t most) const {
  using Stage = RequestState::Stage;
  const Nanos now = clock_.Now();
  std::vector<RequestState> requests;
  requests.reserve(std::min(most, size()));
  for (const Active& active : active_) {
    if (requests.size() == most) return requests;
    const TextGeneration& generation = active.generation;
    const Answer& answer = generation.answer();
    requests.push_back(
        {.id = active.ticket->id(),
         .stage = generation.phase() == Phase::kPrompt ? Stage::kReading : Stage::kDecoding,
         .prompt_tokens = generation.prompt().size(),
         .prompt_read = generation.prompt().size() - generation.prompt_left(),
         .generated_tokens = answer.tokens.size(),
         .seconds = answer.usage.queue_seconds + Seconds(active.since, now)});
  }
  for (const Waiting& waiting : waiting_) {
    if (requests.size() == most) return requests;
    requests.push_back({.id = waiting.ticket->id(),
                        .stage = Stage::kWaiting,
                        .prompt_tokens = waiting.request.prompt.size(),
                        .seconds = Seconds(waiting.since, now)});
  }
  return requests;
}

}  // namespace troupe
