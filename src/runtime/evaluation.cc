#include "runtime/evaluation.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "runtime/feed_in_parts.h"

namespace troupe {
namespace {

// ln of the sum of e^x, in double, safe for any finite logits.
double LogSumExp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return largest + std::log(sum);
}

class RunningMean {
 public:
  void Add(double x) {  // Welford: stable for long texts
    ++count_;
    const double delta = x - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (x - mean_);
  }
  MeanAndError Get() const {
    if (count_ < 2) return {.mean = mean_, .error = 0};
    const double n = static_cast<double>(count_);
    return {.mean = mean_, .error = std::sqrt(squares_ / (n - 1) / n)};
  }

 private:
  std::size_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// Takes the logits of one token after another.
class Scorer {
 public:
  explicit Scorer(const EvaluationHooks& hooks) : hooks_(hooks) {}

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

  Evaluation Finish() const {
    Evaluation result{.tokens = count_, .nll = nll_.Get(), .comparison = std::nullopt};
    if (hooks_.reference != nullptr && count_ > 0) {
      const double n = static_cast<double>(count_);
      result.comparison = Comparison{.kl = kl_.Get(),
                                     .worst_kl = worst_kl_,
                                     .top1_agreement = static_cast<double>(same_top_) / n,
                                     .mean_probability_change = probability_change_ / n};
    }
    return result;
  }

  std::size_t count() const { return count_; }

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
    same_top_ += ArgMax(row_.data(), row_.size()) == ArgMax(logits.data(), logits.size());
    probability_change_ +=
        std::exp(log_p) - std::exp(LogProbability(row_, static_cast<std::size_t>(token)));
    return OkStatus();
  }

  const EvaluationHooks& hooks_;
  std::size_t count_ = 0;
  RunningMean nll_, kl_;
  double worst_kl_ = 0;
  std::size_t same_top_ = 0;
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
  Scorer scorer(hooks);
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
    TROUPE_RETURN_IF_ERROR(FeedInParts(session, window, together, options.warm_up,
                                       [&](std::size_t i, std::span<const float> logits) {
                                         if (i + 1 < window.size() && scored.ok())
                                           scored = scorer.Score(window[i + 1], logits);
                                       }));
    TROUPE_RETURN_IF_ERROR(scored);
    if (hooks.progress) hooks.progress(at + part.size(), text.size());
  }
  if (scorer.count() == 0) {
    return InvalidArgument("the text has {} tokens, too few to score one", text.size());
  }
  return scorer.Finish();
}

}  // namespace troupe
