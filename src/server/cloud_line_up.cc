#include "server/cloud_line_up.h"

#include <algorithm>

#include "runtime/batch_forecast.h"

namespace troupe {
namespace {

// Ends are told what a token of a prompt takes in a pass of this length.
constexpr std::uint32_t kPromptRows = 256;

std::size_t AnswersIn(const BatchCounters& counters) {
  return counters.waiting + counters.reading + counters.decoding;
}

std::size_t EndedOf(const BatchCounters& counters) {
  return counters.finished + counters.cancelled + counters.failed;
}

std::size_t ReadOf(const BatchCounters& counters) {
  return counters.prompt_tokens + counters.cached_tokens;
}

}  // namespace

CloudLoad LoadToTell(const BatchCounters& now, const EndTurns::Ahead& ahead,
                     std::size_t cut_prompts, std::uint32_t sequences) {
  const BatchForecast forecast = ForecastOf(now, sequences, kPromptRows);
  return {.under_way = static_cast<std::uint32_t>(AnswersIn(now) + cut_prompts + ahead.answers),
          .to_read = now.to_read + ahead.tokens,
          .answer_seconds = now.request_seconds,
          .read_seconds = forecast.read_seconds,
          .token_seconds = forecast.token_seconds};
}

void PlaceInLine::HasTurn(const BatchCounters& now) {
  answers_ = AnswersIn(now);
  tokens_ = now.to_read;
  ended_before_ = EndedOf(now);
  read_before_ = ReadOf(now);
  has_turn_ = true;
}

double PlaceInLine::WaitSeconds(const BatchCounters& now, const EndTurns::Ahead& ahead,
                                std::uint32_t sequences) const {
  std::size_t answers = AnswersIn(now), tokens = now.to_read;
  if (has_turn_) {
    // Counters may be older than those of its turn.
    const std::size_t ended = EndedOf(now) - std::min(EndedOf(now), ended_before_);
    const std::size_t read = ReadOf(now) - std::min(ReadOf(now), read_before_);
    answers = std::min(answers, answers_ - std::min(answers_, ended));
    tokens = std::min(tokens, tokens_ - std::min(tokens_, read));
  } else {
    answers += ahead.answers;
    tokens += ahead.tokens;
  }
  return std::max(
      troupe::WaitSeconds(answers, sequences, now.request_seconds),
      ForecastOf(now, sequences, kPromptRows).read_seconds * static_cast<double>(tokens));
}

}  // namespace troupe
