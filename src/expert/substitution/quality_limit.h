// The dial for people, and what it does: a limit on the loss of perplexity picks, of the chains
// that were measured on the model with as much of it in memory, the one that reads the fewest
// bytes. How they are measured, and in which file the figures lie, is the runtime's.
#pragma once

#include <troupe/lossiness.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/substitution/alpha_for_latency.h"

namespace troupe {

// A mean over tokens, and the limits between which the true one lies 95 times of 100.
struct MeasuredMean {
  double mean = 0;
  double least = 0, most = 0;

  bool operator==(const MeasuredMean&) const = default;
};

// One chain against exact, on the same tokens.
struct MeasuredChain {
  std::string chain;  // as ParseSubstitution reads it
  std::uint64_t tokens = 0;
  MeasuredMean kl;                // nats a token, of exact's distribution to this one's
  MeasuredMean perplexity_ratio;  // to exact's, from differences token by token: 1.01 is 1 % more
  double changed = 0;             // share of expert uses that were answered otherwise
  double bytes = 0;               // read a token
  double seconds = 0;             // a token

  // Of perplexity, as a share: the worse of what it loses on the text and of what mean KL says that
  // it would lose on text of exact's own making, where it cannot gain by luck or by being vaguer.
  // The true one is within these limits 95 times of 100.
  double LossBound() const;
  double LeastLoss() const;

  bool operator==(const MeasuredChain&) const = default;
};

// Everything measured with this share of the model's experts in memory.
struct MeasuredShare {
  double share = 0;
  MeasuredChain exact;
  std::vector<MeasuredChain> chains;

  bool operator==(const MeasuredShare&) const = default;
};

// What "exact", "balanced", "fast" or "2.5%" allows perplexity to lose.
inline constexpr double kBalancedLoss = 0.01;
inline constexpr double kFastLoss = 0.05;
Result<Lossiness> ParseQuality(std::string_view text);  // Exact or a LossLimit
std::string ToString(const LossLimit& limit);           // "2.5%"

struct ChosenChain {
  std::string chain = "exact";
  double loss_bound = 0;      // the worse of the shares that were looked at
  double bytes_of_exact = 1;  // that it read there: 0.6 is 40 % less
  double measured_share = 1;  // the nearest of them

  bool operator==(const ChosenChain&) const = default;
};

// Between two measured shares a chain has to keep to the limit at both; above the largest, at that.
// Below the smallest nothing is known, which is an error. Exact is always among the choices, and
// stays where nothing else both keeps to the limit and reads less.
Result<ChosenChain> ChooseChain(std::span<const MeasuredShare> measured, double share,
                                double most_loss);

// "smoe:alpha=0.2, measured with 25.0 % of the experts in memory: loses 0.62 % at most, ..."
std::string ToString(const ChosenChain& choice);

// SMoE's alpha for a time a token (alpha_for_latency.h), from the chains measured that are
// "smoe:alpha=A" and nothing else, exact standing for alpha 0. Times of another share of the
// experts in memory say nothing: one within five hundredths has to have been measured.
Result<AlphaChoice> ChooseAlpha(std::span<const MeasuredShare> measured, double share,
                                double target_seconds);

}  // namespace troupe
