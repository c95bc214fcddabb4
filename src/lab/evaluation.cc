#include "lab/evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "lab/feed_in_parts.h"

namespace troupe {
namespace {

// Tokens of a text that are scored, and those of its first window.
struct ScoredCount {
  std::size_t all = 0, in_window = 0;
};

ScoredCount CountScored(std::size_t text, const EvaluationOptions& options) {
  const std::size_t begin = options.begin ? 1 : 0, step = options.window - begin;
  ScoredCount count;
  for (std::size_t at = 0; at < text; at += step) {
    const std::size_t read = std::min(step, text - at) + begin;
    const std::size_t scored = read > options.warm_up + 1 ? read - options.warm_up - 1 : 0;
    if (at == 0) count.in_window = scored;
    count.all += scored;
  }
  return count;
}

// Takes the logits of one token after another.
class Scorer {
 public:
  Scorer(const EvaluationHooks& hooks, std::size_t block)
      : hooks_(hooks), nll_(block), compared_(block) {}

  Status Score(TokenId token, std::span<const float> logits) {
    const double log_p = LogProbability(logits, static_cast<std::size_t>(token));
    if (!std::isfinite(log_p)) {
      return DataLoss("the logits for text token {} are not finite numbers", count_);
    }
    nll_.Add(-log_p);
    if (hooks_.save != nullptr) TROUPE_RETURN_IF_ERROR(hooks_.save->Append(token, logits));
    if (hooks_.reference != nullptr) TROUPE_RETURN_IF_ERROR(Compare(token, logits));
    ++count_;
    return OkStatus();
  }

  void EndWindow() {
    nll_.EndBlock();
    compared_.EndWindow();
  }

  Evaluation Finish() const {
    Evaluation result{
        .tokens = count_, .blocks = nll_.blocks(), .nll = nll_.Get(), .comparison = std::nullopt};
    if (compared_.tokens() > 0) result.comparison = compared_.Get();
    result.kl_blocks = compared_.KlBlocks();
    return result;
  }

 private:
  Status Compare(TokenId token, std::span<const float> logits) {
    const LogitsReader& reference = *hooks_.reference;
    if (reference.vocabulary() != logits.size()) {
      return InvalidArgument("{}: logits over {} tokens, expected {} as the model has",
                             reference.path(), reference.vocabulary(), logits.size());
    }
    if (count_ >= reference.tokens().size() || reference.tokens()[count_] != token) {
      return InvalidArgument("{}: token {} of the text differs, expected logits of the same text",
                             reference.path(), count_);
    }
    row_.resize(logits.size());
    TROUPE_RETURN_IF_ERROR(reference.Read(count_, row_));
    compared_.Add(static_cast<std::size_t>(token), row_, logits);
    return OkStatus();
  }

  const EvaluationHooks& hooks_;
  std::size_t count_ = 0;
  BlockMean nll_;
  ComparedLogits compared_;
  std::vector<float> row_;
};

}  // namespace

double Evaluation::Perplexity() const { return std::exp(nll.mean); }

Result<Evaluation> Evaluate(Session& session, std::span<const TokenId> text,
                            const EvaluationOptions& options, const EvaluationHooks& hooks) {
  session.Truncate(0);
  if (options.window < 2 || options.window > session.room()) {
    return InvalidArgument("a window of {} tokens, expected 2 to the context's {}", options.window,
                           session.room());
  }
  if (options.warm_up + 1 >= options.window) {
    return InvalidArgument("a warm-up of {} tokens leaves none of a window of {} to score",
                           options.warm_up, options.window);
  }
  const std::size_t together = options.together.value_or(options.window);
  if (together == 0) return InvalidArgument("0 tokens scored together, expected at least 1");
  const std::size_t begin_tokens = options.begin ? 1 : 0;
  const std::size_t step = options.window - begin_tokens;
  const ScoredCount count = CountScored(text.size(), options);
  if (count.all == 0) {
    return InvalidArgument("the text has {} tokens, too few to score one", text.size());
  }
  Scorer scorer(hooks, BlockLength(count.all, count.in_window));
  std::size_t fed = 0;
  double pass_seconds = 0;
  std::vector<TokenId> window;
  for (std::size_t at = 0; at < text.size(); at += step) {
    const std::span<const TokenId> part = text.subspan(at, std::min(step, text.size() - at));
    window.clear();
    if (options.begin) window.push_back(*options.begin);
    window.insert(window.end(), part.begin(), part.end());
    if (window.size() < 2) break;  // one last token with nothing before it
    session.Truncate(0);
    // Row i predicts token i + 1; the last row predicts a token that is not in the window.
    Status scored;
    Stopwatch whole;
    double scoring = 0;
    const auto score = [&](std::size_t i, std::span<const float> logits) {
      if (i + 1 == window.size() || !scored.ok()) return;
      const Stopwatch since;
      scored = scorer.Score(window[i + 1], logits);
      scoring += since.Seconds();
    };
    TROUPE_RETURN_IF_ERROR(FeedInParts(session, window, together, options.warm_up,
                                       options.together ? Phase::kDecode : Phase::kPrompt, score));
    pass_seconds += whole.Seconds() - scoring;
    fed += window.size();
    TROUPE_RETURN_IF_ERROR(scored);
    scorer.EndWindow();
    if (hooks.progress) hooks.progress(at + part.size(), text.size());
  }
  Evaluation result = scorer.Finish();
  result.fed = fed;
  result.pass_seconds = pass_seconds;
  return result;
}

}  // namespace troupe
