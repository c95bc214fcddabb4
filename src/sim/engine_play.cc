#include "sim/engine_play.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe {

double PassCosts::Seconds(std::uint32_t rows) const {
  const double left_out = std::pow(1 - static_cast<double>(top_k) / experts, rows);
  return pass_seconds + rows * row_seconds + layers * experts * (1 - left_out) * expert_seconds;
}

void EnginePlay::Add(RequestId request, std::uint32_t prompt, std::uint32_t tokens,
                     std::optional<Nanos> deadline) {
  TROUPE_CHECK(prompt > 0 && tokens > 0);
  waiting_.push_back(
      {.request = request, .prompt_left = prompt, .tokens_left = tokens, .deadline = deadline});
}

std::optional<EnginePlay::Pass> EnginePlay::BeginPass() {
  while (!waiting_.empty() && active_.size() < setup_.sequences) {
    active_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  if (active_.empty()) return std::nullopt;
  std::vector<BatchCandidate> candidates;
  for (const Asked& asked : active_) {
    candidates.push_back({.request = asked.request,
                          .phase = asked.prompt_left > 0 ? Phase::kPrompt : Phase::kDecode,
                          .prompt_left = asked.prompt_left,
                          .deadline = asked.deadline,
                          .passed_over = asked.passed_over});
  }
  choice_ = ChooseBatch(candidates, meter_.speed(), setup_.limits);
  pass_ = {.decodes = choice_.RowsIn(Phase::kDecode), .prompts = choice_.RowsIn(Phase::kPrompt)};
  TROUPE_CHECK(pass_.decodes + pass_.prompts > 0);
  pass_.seconds = setup_.costs.Seconds(pass_.decodes + pass_.prompts);
  return pass_;
}

std::vector<EnginePlay::Progress> EnginePlay::EndPass() {
  meter_.PassEnded(pass_.decodes, pass_.prompts, pass_.seconds);
  for (Asked& asked : active_) ++asked.passed_over;
  std::vector<Progress> done;
  for (const BatchRows& rows : choice_.rows) {
    Asked& asked = *std::ranges::find(active_, rows.request, &Asked::request);
    asked.passed_over = 0;
    if (rows.phase == Phase::kPrompt) asked.prompt_left -= rows.rows;
    const bool has_token = asked.prompt_left == 0;
    asked.tokens_left -= has_token ? 1 : 0;
    done.push_back({.request = rows.request,
                    .prompt_left = asked.prompt_left,
                    .has_token = has_token,
                    .ended = asked.tokens_left == 0});
  }
  for (const Asked& asked : active_) {
    most_passed_over_ = std::max(most_passed_over_, asked.passed_over);
  }
  std::erase_if(active_, [](const Asked& asked) { return asked.tokens_left == 0; });
  return done;
}

bool EnginePlay::HasBegun(RequestId request) const {
  return std::ranges::find(active_, request, &Asked::request) != active_.end();
}

std::size_t EnginePlay::reading() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(active_, [](const Asked& asked) { return asked.prompt_left > 0; }));
}

std::size_t EnginePlay::to_read() const {
  std::size_t tokens = 0;
  for (const Asked& asked : waiting_) tokens += asked.prompt_left;
  for (const Asked& asked : active_) tokens += asked.prompt_left;
  return tokens;
}

}  // namespace troupe
