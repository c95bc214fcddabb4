#include "runtime/generator.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "runtime/answer_drafts.h"
#include "runtime/draft_check.h"

namespace troupe {
namespace {

// The passes of an answer after its prompt: what it has said last, with a draft behind it.
class Passes {
 public:
  Passes(Session& session, TextGeneration& generation, const GenerateOptions& options,
         Speculation* speculation)
      : session_(session),
        generation_(generation),
        speculation_(speculation),
        drafts_(speculation == nullptr ? DraftChoice() : speculation->drafters, generation, options,
                session.tokens().first(session.tokens().size() -
                                       generation.answer().usage.prompt_tokens)) {}

  Status Run() {
    if (speculation_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(const double seconds, Feed());
      seconds_ += seconds;
      return OkStatus();
    }
    auto& [choice, governor, meter] = *speculation_;
    drafts_.Follow(generation_, governor);
    PassSoFar so_far{.rows = 1, .tokens = 1};
    const std::size_t most = std::min(session_.MostGuesses(), generation_.MostGuesses());
    const auto draft = drafts_.Offer(most, governor, meter.speed(), so_far);
    DraftGovernor::Pass pass{.decode_rows = 1};
    if (draft.empty()) {
      TROUPE_ASSIGN_OR_RETURN(pass.seconds, Feed());
    } else {
      const Stopwatch watch;
      TROUPE_ASSIGN_OR_RETURN(const CheckedDraft checked, CheckDraft(session_, generation_, draft));
      pass.guessed = checked.drafted, pass.right = checked.right;
      pass.seconds = watch.Seconds();
      drafts_.Checked(checked.drafted, checked.right, governor);
    }
    seconds_ += pass.seconds;
    const double saved = governor.OnPass(pass, meter.speed());
    meter.PassEnded(1 + pass.guessed, 0, pass.seconds);
    generation_.usage().speculation += {.checks = draft.empty() ? 0u : 1u,
                                        .drafted = pass.guessed,
                                        .accepted = pass.right,
                                        .saved_seconds = saved};
    return OkStatus();
  }

  double seconds() const { return seconds_; }

 private:
  // The last token alone; how long its pass took.
  Result<double> Feed() {
    const Stopwatch watch;
    TROUPE_RETURN_IF_ERROR(session_.Feed(generation_.NextTokens(1)));
    const double seconds = watch.Seconds();
    (void)generation_.Accept(session_.logits(), session_.sampler_scratch());
    return seconds;
  }

  Session& session_;
  TextGeneration& generation_;
  Speculation* speculation_;  // null: no drafts
  AnswerDrafts drafts_;
  double seconds_ = 0;
};

}  // namespace

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
  Passes passes(session, generation, options, hooks.speculation);
  while (!generation.ended()) {
    if (hooks.stop && hooks.stop()) {
      generation.Cancel();
      break;
    }
    if (generation.NextTokens(1).empty()) {  // the prompt's logits are due
      (void)generation.Accept(session.logits(), session.sampler_scratch());
    } else {
      TROUPE_RETURN_IF_ERROR(passes.Run());
    }
    if (generation.state() == TextGeneration::State::kFailed) return generation.status();
  }

  Usage& usage = generation.usage();
  usage.decode_pass_seconds = passes.seconds();
  usage.expert_uses = session.expert_uses() - uses_before;
  usage.experts = session.expert_usage().Since(usage_before);
  usage.decode_experts = session.expert_usage().Since(usage_after_prompt);
  return std::move(generation).TakeAnswer();
}

}  // namespace troupe
