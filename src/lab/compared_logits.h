// How far one set of predictions lies from another, token by token on the same text: KL divergence,
// perplexity, agreement on the most likely token. Knows neither models nor files.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lab/intervals.h"

namespace troupe {

// Token by token, the same token from the same beginning. The intervals are those of BlockMean
// (intervals.h): a window's tokens are alike, so a window is one block, or parts of it are where
// there are less than eight.
struct Comparison {
  Interval kl;  // of the reference's distribution to this one's, in nats
  double worst_kl = 0;
  Interval perplexity_ratio;  // this one's to the reference's: exp of the mean difference
  Interval top1_agreement;    // share of tokens on which both find the same token most likely
  double mean_probability_change = 0;  // of the true token, this minus reference
};

// Takes the logits of one token after another.
class ComparedLogits {
 public:
  explicit ComparedLogits(std::size_t block) : kl_(block), nll_change_(block), same_top_(block) {}

  // What was predicted for `token`, which came; both over the same vocabulary.
  void Add(std::size_t token, std::span<const float> reference, std::span<const float> other);
  void EndWindow();

  std::size_t tokens() const { return kl_.count(); }
  Comparison Get() const;  // REQUIRES: tokens() > 0
  std::vector<BlockMean::Block> KlBlocks() const { return kl_.Blocks(); }

 private:
  BlockMean kl_, nll_change_, same_top_;
  double worst_kl_ = 0;
  double probability_change_ = 0;
};

// log of the softmax at `index`, in double: ln p(index).
double LogProbability(std::span<const float> logits, std::size_t index);

// sum p ln(p / q) with p the softmax of `reference` and q that of `other`.
double KlDivergence(std::span<const float> reference, std::span<const float> other);

}  // namespace troupe
