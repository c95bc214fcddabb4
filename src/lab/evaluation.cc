#include "lab/evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "kernels/elementwise.h"
#include "lab/feed_in_parts.h"

namespace troupe {
namespace {

// ln of the sum of e^x, in double, safe for any finite logits.
double LogSumExp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return largest + std::log(sum);
}

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

// What an interval of what cannot lie elsewhere is.
Interval Within(Interval interval, double least, double most) {
  interval.least = std::max(interval.least, least);
  interval.most = std::min(interval.most, most);
  return interval;
}

// Takes the logits of one token after another.
class Scorer {
 public:
  Scorer(const EvaluationHooks& hooks, std::size_t block)
      : hooks_(hooks), nll_(block), kl_(block), nll_change_(block), same_top_(block) {}

  Status Score(TokenId token, std::span<const float> logits) {
    const double log_p = LogProbability(logits, static_cast<std::size_t>(token));
    if (!std::isfinite(log_p)) {
      return DataLoss("the logits for text token {} are not finite numbers", count_);
    }
    nll_.Add(-log_p);
    if (hooks_.save != nullptr) TROUPE_RETURN_IF_ERROR(hooks_.save->Append(token, logits));
    if (hooks_.reference != nullptr) TROUPE_RETURN_IF_ERROR(Compare(token, logits, log_p));
    ++count_;
    return OkStatus();
  }

  void EndWindow() {
    for (BlockMean* mean : {&nll_, &kl_, &nll_change_, &same_top_}) mean->EndBlock();
  }

  Evaluation Finish() const {
    Evaluation result{
        .tokens = count_, .blocks = nll_.blocks(), .nll = nll_.Get(), .comparison = std::nullopt};
    if (hooks_.reference != nullptr && count_ > 0) {
      const Interval change = nll_change_.Get();
      result.comparison =
          Comparison{.kl = Within(kl_.Get(), 0, kl_.Get().most),
                     .worst_kl = worst_kl_,
                     .perplexity_ratio = {.mean = std::exp(change.mean),
                                          .least = std::exp(change.least),
                                          .most = std::exp(change.most)},
                     .top1_agreement = Within(same_top_.Get(), 0, 1),
                     .mean_probability_change = probability_change_ / static_cast<double>(count_)};
    }
    return result;
  }

 private:
  Status Compare(TokenId token, std::span<const float> logits, double log_p) {
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
    const double kl = KlDivergence(row_, logits);
    kl_.Add(kl);
    worst_kl_ = std::max(worst_kl_, kl);
    const double reference_log_p = LogProbability(row_, static_cast<std::size_t>(token));
    nll_change_.Add(reference_log_p - log_p);
    same_top_.Add(ArgMax(row_.data(), row_.size()) == ArgMax(logits.data(), logits.size()) ? 1 : 0);
    probability_change_ += std::exp(log_p) - std::exp(reference_log_p);
    return OkStatus();
  }

  const EvaluationHooks& hooks_;
  std::size_t count_ = 0;
  BlockMean nll_, kl_, nll_change_, same_top_;
  double worst_kl_ = 0;
  double probability_change_ = 0;
  std::vector<float> row_;
};

}  // namespace

double Evaluation::Perplexity() const { return std::exp(nll.mean); }

double LogProbability(std::span<const float> logits, std::size_t index) {
  return static_cast<double>(logits[index]) - LogSumExp(logits);
}

double KlDivergence(std::span<const float> reference, std::span<const float> other) {
  TROUPE_CHECK(reference.size() == other.size());
  const double log_p = LogSumExp(reference), log_q = LogSumExp(other);
  double sum = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double lp = reference[i] - log_p;
    sum += std::exp(lp) * (lp - (other[i] - log_q));
  }
  return std::max(0.0, sum);  // rounding may leave a hair below
}

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
