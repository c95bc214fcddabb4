#include "expert/substitution/quality_limit.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

namespace troupe {
namespace {

constexpr double kSameShare = 0.01;  // nearer than this is the share that was measured
constexpr double kLikeShare = 0.05;  // nearer than this, times are alike
constexpr double kMostPercent = 100;

const MeasuredChain* Find(const MeasuredShare& share, std::string_view chain) {
  const auto found = std::ranges::find(share.chains, chain, &MeasuredChain::chain);
  return found == share.chains.end() ? nullptr : &*found;
}

// Of a chain that is SMoE's router alone.
std::optional<double> AlphaOf(std::string_view chain) {
  constexpr std::string_view kSmoe = "smoe:alpha=";
  if (!chain.starts_with(kSmoe)) return std::nullopt;
  chain.remove_prefix(kSmoe.size());
  double alpha = 0;
  const char* const end = chain.data() + chain.size();
  const auto [at, error] = std::from_chars(chain.data(), end, alpha);
  if (error != std::errc() || at != end) return std::nullopt;
  return alpha;
}

double BytesOfExact(const MeasuredShare& share, const MeasuredChain& chain) {
  return share.exact.bytes > 0 ? chain.bytes / share.exact.bytes : 1;
}

// The measured shares around `share`, the nearest first: one or two.
std::vector<const MeasuredShare*> Around(std::span<const MeasuredShare> measured, double share) {
  const MeasuredShare *below = nullptr, *above = nullptr;
  for (const MeasuredShare& one : measured) {
    if (std::abs(one.share - share) <= kSameShare) return {&one};
    if (one.share < share && (below == nullptr || one.share > below->share)) below = &one;
    if (one.share > share && (above == nullptr || one.share < above->share)) above = &one;
  }
  if (below == nullptr) return {};
  if (above == nullptr) return {below};
  if (share - below->share <= above->share - share) return {below, above};
  return {above, below};
}

}  // namespace

double MeasuredChain::LossBound() const {
  return std::max(perplexity_ratio.most - 1, std::expm1(kl.most));
}
double MeasuredChain::LeastLoss() const {
  return std::max(perplexity_ratio.least - 1, std::expm1(kl.least));
}

Result<Lossiness> ParseQuality(std::string_view text) {
  if (text == "exact") return Lossiness(Exact{});
  if (text == "balanced") return Lossiness(LossLimit{kBalancedLoss});
  if (text == "fast") return Lossiness(LossLimit{kFastLoss});
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || std::string_view(at, end) != "%" || !(percent > 0) ||
      percent > kMostPercent) {
    return InvalidArgument(
        "quality '{}' found, expected exact, balanced, fast or a percentage "
        "above 0, such as 2.5%",
        text);
  }
  return Lossiness(LossLimit{percent / 100});
}

std::string ToString(const LossLimit& limit) { return fmt::format("{:g}%", 100 * limit.share); }

Result<ChosenChain> ChooseChain(std::span<const MeasuredShare> measured, double share,
                                double most_loss) {
  const std::vector<const MeasuredShare*> around = Around(measured, share);
  if (around.empty()) {
    return Error(Code::kFailedPrecondition,
                 "what quality costs was not measured with so little as {:.1f} % of the experts in "
                 "memory",
                 100 * share);
  }
  const MeasuredShare& nearest = *around.front();
  ChosenChain best{.measured_share = nearest.share};
  for (const MeasuredChain& chain : nearest.chains) {
    ChosenChain candidate{.chain = chain.chain,
                          .bytes_of_exact = BytesOfExact(nearest, chain),
                          .measured_share = nearest.share};
    bool within = true;
    for (const MeasuredShare* one : around) {
      const MeasuredChain* there = Find(*one, chain.chain);
      within = within && there != nullptr && there->LossBound() <= most_loss;
      if (within) candidate.loss_bound = std::max(candidate.loss_bound, there->LossBound());
    }
    if (within && candidate.bytes_of_exact < best.bytes_of_exact) best = std::move(candidate);
  }
  return best;
}

Result<AlphaChoice> ChooseAlpha(std::span<const MeasuredShare> measured, double share,
                                double target_seconds) {
  const auto distance = [share](const MeasuredShare& one) { return std::abs(one.share - share); };
  const auto nearest = std::ranges::min_element(measured, {}, distance);
  if (nearest == measured.end() || distance(*nearest) > kLikeShare) {
    return Error(Code::kFailedPrecondition,
                 "how long a token takes was not measured with about {:.1f} % of the experts in "
                 "memory",
                 100 * share);
  }
  std::vector<MeasuredAlpha> points = {{.alpha = 0, .seconds = nearest->exact.seconds}};
  for (const MeasuredChain& chain : nearest->chains) {
    if (const std::optional<double> alpha = AlphaOf(chain.chain)) {
      points.push_back({.alpha = *alpha, .seconds = chain.seconds});
    }
  }
  return ChooseAlpha(points, target_seconds);
}

std::string ToString(const ChosenChain& choice) {
  if (choice.chain == "exact")
    return "exact, as no chain measured keeps to the limit and reads less";
  return fmt::format(
      "{}, which read {:.1f} % of exact's bytes and lost at most {:.2f} % of perplexity with "
      "{:.1f} "
      "% of the experts in memory",
      choice.chain, 100 * choice.bytes_of_exact, 100 * choice.loss_bound,
      100 * choice.measured_share);
}

}  // namespace troupe
