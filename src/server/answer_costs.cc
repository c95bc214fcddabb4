#include "server/answer_costs.h"

#include <algorithm>

namespace troupe {
namespace {

double Each(double seconds, std::size_t count) {
  return count > 0 ? 1e3 * seconds / static_cast<double>(count) : 0;
}

// As llama-server has it. The first token counts as generated, and comes with the prompt's last
// pass: the time between tokens is that of the passes after it.
Json TimingsJson(const Usage& usage) {
  const std::size_t computed =
      usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens);
  return {{"cache_n", usage.cached_tokens},
          {"prompt_n", computed},
          {"prompt_ms", 1e3 * usage.prefill_seconds},
          {"prompt_per_token_ms", Each(usage.prefill_seconds, computed)},
          {"prompt_per_second", usage.PrefillTokensPerSecond()},
          {"predicted_n", usage.generated_tokens},
          {"predicted_ms", 1e3 * usage.decode_seconds},
          {"predicted_per_token_ms", Each(usage.decode_seconds, usage.decode_steps)},
          {"predicted_per_second", usage.DecodeTokensPerSecond()}};
}

}  // namespace

Usage UsageOfAll(std::span<const ChoiceAnswer> choices) {
  Usage all;
  for (const ChoiceAnswer& choice : choices) {
    const Usage& usage = choice.answer.usage;
    all.experts += usage.experts;
    all.speculation += usage.speculation;
    all.prompt_tokens += usage.prompt_tokens;
    all.cached_tokens += usage.cached_tokens;
    all.generated_tokens += usage.generated_tokens;
    all.decode_steps += usage.decode_steps;
    all.queue_seconds = std::max(all.queue_seconds, usage.queue_seconds);
    all.prefill_seconds = std::max(all.prefill_seconds, usage.prefill_seconds);
    all.first_token_seconds = std::max(all.first_token_seconds, usage.first_token_seconds);
    all.decode_seconds = std::max(all.decode_seconds, usage.decode_seconds);
  }
  return all;
}

void TellCosts(const Usage& usage, std::uint64_t seed, Json& json) {
  json["timings"] = TimingsJson(usage);
  json["troupe"] = TroupeJson(usage, seed);
}

Json TroupeJson(const Usage& usage, std::uint64_t seed) {
  return {{"seed", seed},
          {"shared_prefix_tokens", usage.cached_tokens},
          {"expert_hits", usage.experts.hits},
          {"expert_misses", usage.experts.misses},
          {"by_peers", usage.experts.elsewhere},
          {"bytes_read", usage.experts.bytes_read},
          {"stall_s", usage.experts.stall_seconds},
          {"substitutions", usage.experts.NotExact()},
          {"peer_bf16", usage.experts.peer_bf16},
          {"peer_q8", usage.experts.peer_q8},
          {"grouped", usage.experts.grouped},
          {"drafted", usage.speculation.drafted},
          {"draft_accepted", usage.speculation.accepted},
          {"draft_saved_s", usage.speculation.saved_seconds},
          {"queue_s", usage.queue_seconds},
          {"prefill_s", usage.prefill_seconds},
          {"first_token_s", usage.first_token_seconds},
          {"decode_s", usage.decode_seconds}};
}

Json ProgressJson(std::size_t read, std::size_t all) {
  return {{"processed", read}, {"total", all}};
}

}  // namespace troupe
