#include "runtime/generator.h"

#include "base/clock.h"

namespace troupe {

Result<Answer> Generate(Session& session, const Tokenizer& tokenizer,
                        std::span<const TokenId> prompt, const GenerateOptions& options,
                        const GenerateHooks& hooks) {
  const std::uint64_t uses_before = session.expert_uses();
  const ExpertUsage usage_before = session.expert_usage();
  const std::size_t tokens_before = session.tokens().size();
  const MonotonicClock clock;
  TROUPE_ASSIGN_OR_RETURN(
      TextGeneration generation,
      TextGeneration::Make(tokenizer, {prompt.begin(), prompt.end()}, options,
                           {.used = tokens_before, .capacity = tokens_before + session.room()},
                           clock, {.on_text = hooks.on_text, .on_logits = hooks.on_logits}));

  const Status read = session.FeedPrompt(prompt, hooks.stop);
  if (read.code() != Code::kCancelled) TROUPE_RETURN_IF_ERROR(read);
  generation.Read(session.tokens().size() - tokens_before);
  if (!read.ok()) generation.Cancel();

  const ExpertUsage usage_after_prompt = session.expert_usage();
  double pass_seconds = 0;
  while (!generation.ended()) {
    if (hooks.stop && hooks.stop()) {
      generation.Cancel();
      break;
    }
    if (const std::span<const TokenId> next = generation.NextTokens(1); !next.empty()) {
      const Stopwatch watch;
      TROUPE_RETURN_IF_ERROR(session.Feed(next));
      pass_seconds += watch.Seconds();
    }
    TROUPE_RETURN_IF_ERROR(generation.Accept(session.logits(), session.sampler_scratch()));
  }

  Usage& usage = generation.usage();
  usage.decode_pass_seconds = pass_seconds;
  usage.expert_uses = session.expert_uses() - uses_before;
  usage.experts = session.expert_usage().Since(usage_before);
  usage.decode_experts = session.expert_usage().Since(usage_after_prompt);
  return std::move(generation).TakeAnswer();
}

}  // namespace troupe
