#include "split/own_costs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/batch_forecast.h"

namespace troupe {

std::optional<PlaceCosts> OwnCostsOf(BatchCounters counters, const Plan& plan, std::size_t read,
                                     const OwnConditions& conditions) {
  const auto rows = static_cast<std::uint32_t>(std::clamp<std::size_t>(read, 1, plan.pass_rows));
  // What this machine answers is not exact: then it is as fast as that.
  if (!conditions.exact_only) counters.exact_speed = counters.speed;
  const BatchForecast now = ForecastOf(counters, plan.sequences, rows);
  if (now.token_seconds <= 0 || now.read_seconds <= 0) return std::nullopt;
  double wait_seconds = std::max(
      now.wait_seconds, WaitSeconds(conditions.runs, plan.sequences, counters.request_seconds));
  if (conditions.ahead > 0) {
    const auto others =
        static_cast<std::uint32_t>(std::min<std::size_t>(conditions.ahead, plan.pass_rows));
    const double reads = ForecastOf(counters, plan.sequences, others).read_seconds *
                         static_cast<double>(conditions.ahead);
    // Who waits for a sequence is counted in both.
    wait_seconds = std::max(wait_seconds, reads);
  }
  return PlaceCosts{.wait_seconds = wait_seconds,
                    .link_seconds = 0,
                    .read_seconds = now.read_seconds / conditions.power,
                    .token_seconds = now.token_seconds / conditions.power};
}

std::vector<std::size_t> PromptsToMeasureBy(const Plan& plan) {
  const std::size_t context = plan.context;
  const std::size_t room = std::max<std::size_t>(context - std::min(context, kMeasuredAnswer), 1);
  const std::size_t few = std::min(kShortPrompt, room);
  std::vector<std::size_t> prompts = {few, few};
  const std::size_t many = std::min({kLongPrompt, room, std::size_t{plan.pass_rows}});
  if (many >= 2 * few) prompts.push_back(many);
  return prompts;
}

Request RequestToMeasureBy(std::size_t vocabulary, std::size_t tokens, std::uint64_t text) {
  constexpr std::size_t kFarApart = 7919;  // a prime: in most vocabularies all tokens differ
  std::vector<TokenId> prompt(tokens);
  for (std::size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>((i + 1 + text * tokens) * kFarApart % vocabulary);
  }
  Request request{.max_tokens = kMeasuredAnswer};
  request.prompt = std::move(prompt);
  request.ignore_end = true;
  request.cache_salt = "of nobody's text " + std::to_string(text);
  return request;
}

}  // namespace troupe
