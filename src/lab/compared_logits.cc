#include "lab/compared_logits.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/elementwise.h"

namespace troupe {
namespace {

// ln of the sum of e^x, in double, safe for any finite logits.
double LogSumExp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x) - largest);
  return largest + std::log(sum);
}

// What an interval of what cannot lie elsewhere is.
Interval Within(Interval interval, double least, double most) {
  interval.least = std::max(interval.least, least);
  interval.most = std::min(interval.most, most);
  return interval;
}

}  // namespace

void ComparedLogits::Add(std::size_t token, std::span<const float> reference,
                         std::span<const float> other) {
  const double kl = KlDivergence(reference, other);
  kl_.Add(kl);
  worst_kl_ = std::max(worst_kl_, kl);
  const double reference_log_p = LogProbability(reference, token);
  const double log_p = LogProbability(other, token);
  nll_change_.Add(reference_log_p - log_p);
  const bool same =
      ArgMax(reference.data(), reference.size()) == ArgMax(other.data(), other.size());
  same_top_.Add(same ? 1 : 0);
  probability_change_ += std::exp(log_p) - std::exp(reference_log_p);
}

void ComparedLogits::EndWindow() {
  for (BlockMean* mean : {&kl_, &nll_change_, &same_top_}) mean->EndBlock();
}

Comparison ComparedLogits::Get() const {
  TROUPE_CHECK(tokens() > 0);
  const Interval change = nll_change_.Get(), kl = kl_.Get();
  return {.kl = Within(kl, 0, kl.most),
          .worst_kl = worst_kl_,
          .perplexity_ratio = {.mean = std::exp(change.mean),
                               .least = std::exp(change.least),
                               .most = std::exp(change.most)},
          .top1_agreement = Within(same_top_.Get(), 0, 1),
          .mean_probability_change = probability_change_ / static_cast<double>(tokens())};
}

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

}  // namespace troupe
