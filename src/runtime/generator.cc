#include "runtime/generator.h"

#include "base/clock.h"
#include "text/stop_strings.h"
#include "text/stream_decoder.h"

namespace troupe {
namespace {

double PerSecond(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// Text on its way out: characters completed, stop strings looked for, the sink told.
class Output {
 public:
  Output(const Tokenizer& tokenizer, const std::vector<std::string>& stops, const TextSink& sink)
      : decoder_(tokenizer), stops_(stops), sink_(sink) {}

  void Push(TokenId token) { Show(stops_.Push(decoder_.Push(token))); }
  void Flush() {
    Show(stops_.Push(decoder_.Flush()));
    Show(stops_.Flush());
  }
  bool stopped() const { return stops_.found().has_value(); }
  bool cancelled() const { return cancelled_; }
  std::string TakeText() { return std::move(text_); }

 private:
  void Show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (sink_ && !sink_(piece)) cancelled_ = true;
  }

  StreamDecoder decoder_;
  StopMatcher stops_;
  const TextSink& sink_;
  std::string text_;
  bool cancelled_ = false;
};

}  // namespace

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEndToken:
      return "end";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kContextFull:
      return "context full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

double GenerateResult::PrefillTokensPerSecond() const {
  return PerSecond(prompt_tokens, prefill_seconds);
}

double GenerateResult::DecodeTokensPerSecond() const {
  return PerSecond(decode_steps, decode_seconds);
}

Result<GenerateResult> Generate(Session& session, const Tokenizer& tokenizer,
                                std::span<const TokenId> prompt, const GenerateOptions& options,
                                const GenerateHooks& hooks) {
  if (prompt.empty()) return InvalidArgument("the prompt is empty, expected at least one token");
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Make(options.sampler));
  GenerateResult result;
  Output output(tokenizer, options.stop, hooks.on_text);

  const std::uint64_t uses_before = session.expert_uses();
  const ExpertUsage usage_before = session.expert_usage();
  const std::size_t tokens_before = session.tokens().size();
  const Stopwatch watch;
  const Status read = session.FeedPrompt(prompt, hooks.stop);
  const bool stopped = read.code() == Code::kCancelled;
  if (!stopped) TROUPE_RETURN_IF_ERROR(read);
  result.prompt_tokens = session.tokens().size() - tokens_before;
  result.prefill_seconds = watch.Seconds();
  const ExpertUsage usage_after_prompt = session.expert_usage();
  for (const TokenId token : prompt) sampler.Accept(token);

  if (stopped) result.finish = FinishReason::kCancelled;
  double decode_start = 0;
  while (!stopped && result.token_ids.size() < options.max_tokens) {
    if (hooks.stop && hooks.stop()) {
      result.finish = FinishReason::kCancelled;
      break;
    }
    TROUPE_ASSIGN_OR_RETURN(const TokenId token, sampler.Sample(session.logits()));
    if (result.token_ids.empty()) {
      result.first_token_seconds = watch.Seconds();
      decode_start = result.first_token_seconds;
    }
    if (!options.ignore_end && tokenizer.IsEndOfGeneration(token)) {
      result.finish = FinishReason::kEndToken;
      break;
    }
    if (hooks.on_logits) TROUPE_RETURN_IF_ERROR(hooks.on_logits(token, session.logits()));
    sampler.Accept(token);
    result.token_ids.push_back(token);
    output.Push(token);
    if (output.stopped() || output.cancelled()) {
      result.finish = output.stopped() ? FinishReason::kStopString : FinishReason::kCancelled;
      break;
    }
    if (result.token_ids.size() == options.max_tokens) break;
    if (session.room() == 0) {
      result.finish = FinishReason::kContextFull;
      break;
    }
    const double pass_start = watch.Seconds();
    TROUPE_RETURN_IF_ERROR(session.Feed({&token, 1}));
    result.decode_pass_seconds += watch.Seconds() - pass_start;
    ++result.decode_steps;
  }
  if (!result.token_ids.empty()) result.decode_seconds = watch.Seconds() - decode_start;
  result.expert_uses = session.expert_uses() - uses_before;
  result.experts = session.expert_usage().Since(usage_before);
  result.decode_experts = session.expert_usage().Since(usage_after_prompt);
  output.Flush();
  result.text = output.TakeText();
  return result;
}

}  // namespace troupe
