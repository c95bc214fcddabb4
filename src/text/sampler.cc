#include "text/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/exact_exp.h"
#include "base/rng.h"

namespace troupe {
namespace {

constexpr auto kMoreLikely = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

Status CheckRange(std::string_view name, double value, double min, double max) {
  if (value >= min && value <= max) return OkStatus();  // false for NaN
  return InvalidArgument("{} is {}, expected {} to {}", name, value, min, max);
}

}  // namespace

Status Validate(const Sampling& sampling) {
  TROUPE_RETURN_IF_ERROR(CheckRange("temperature", sampling.temperature, 0, 100));
  TROUPE_RETURN_IF_ERROR(CheckRange("top-p", sampling.top_p, 0, 1));
  TROUPE_RETURN_IF_ERROR(CheckRange("min-p", sampling.min_p, 0, 1));
  TROUPE_RETURN_IF_ERROR(CheckRange("repetition penalty", sampling.repetition_penalty, 0.01, 100));
  TROUPE_RETURN_IF_ERROR(CheckRange("frequency penalty", sampling.frequency_penalty, -100, 100));
  TROUPE_RETURN_IF_ERROR(CheckRange("presence penalty", sampling.presence_penalty, -100, 100));
  constexpr double kMost = 1e6;
  TROUPE_RETURN_IF_ERROR(CheckRange("DRY multiplier", sampling.dry.multiplier, 0, kMost));
  TROUPE_RETURN_IF_ERROR(CheckRange("DRY base", sampling.dry.base, 1, kMost));
  TROUPE_RETURN_IF_ERROR(CheckRange("XTC probability", sampling.xtc.probability, 0, 1));
  TROUPE_RETURN_IF_ERROR(CheckRange("XTC threshold", sampling.xtc.threshold, 0, 1));
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id < 0) return InvalidArgument("bias for token {}: ids begin at 0", id);
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return InvalidArgument("bias for token {} is {}, expected a number or -infinity", id, bias);
    }
  }
  return OkStatus();
}

std::string ToString(const Sampling& sampling) {
  std::string text =
      sampling.temperature == 0 ? "greedy" : fmt::format("temperature {}", sampling.temperature);
  if (sampling.temperature != 0) {
    if (sampling.top_k != 0) text += fmt::format(", top-k {}", sampling.top_k);
    if (sampling.top_p < 1) text += fmt::format(", top-p {}", sampling.top_p);
    if (sampling.min_p > 0) text += fmt::format(", min-p {}", sampling.min_p);
    if (sampling.xtc.probability > 0) {
      text += fmt::format(", XTC {} above {}", sampling.xtc.probability, sampling.xtc.threshold);
    }
  }
  if (sampling.penalty_window != 0) {
    std::string penalties;
    if (sampling.repetition_penalty != 1)
      penalties += fmt::format(", repetition {}", sampling.repetition_penalty);
    if (sampling.frequency_penalty != 0)
      penalties += fmt::format(", frequency {}", sampling.frequency_penalty);
    if (sampling.presence_penalty != 0)
      penalties += fmt::format(", presence {}", sampling.presence_penalty);
    if (!penalties.empty())
      text += fmt::format("{} over {} tokens", penalties, sampling.penalty_window);
  }
  if (sampling.dry.multiplier > 0) {
    text += fmt::format(", DRY {} x {} from {} tokens", sampling.dry.multiplier, sampling.dry.base,
                        sampling.dry.allowed_length);
  }
  if (!sampling.logit_bias.empty())
    text += fmt::format(", bias for {} tokens", sampling.logit_bias.size());
  if (sampling.temperature != 0) text += fmt::format(", seed {}", sampling.seed);
  return text;
}

Sampler::Sampler(const Sampling& options, TokenSet breakers) : options_(options) {
  if (options.dry.multiplier > 0) dry_.emplace(options.dry, std::move(breakers));
}

Result<Sampler> Sampler::Make(const Sampling& options, TokenSet breakers) {
  TROUPE_RETURN_IF_ERROR(Validate(options));
  return Sampler(options, std::move(breakers));
}

void Sampler::Accept(TokenId token) {
  if (dry_) dry_->Accept(token);
  if (options_.penalty_window == 0) return;
  recent_.push_back(token);
  ++recent_count_[token];
  if (recent_.size() <= options_.penalty_window) return;
  const auto oldest = recent_count_.find(recent_.front());
  if (--oldest->second == 0) recent_count_.erase(oldest);
  recent_.pop_front();
}

Result<TokenId> Sampler::Sample(std::span<const float> logits, std::uint64_t position,
                                SamplerScratch& scratch, const TokenSet* allowed) const {
  Candidates& candidates = scratch.candidates_;
  TROUPE_RETURN_IF_ERROR(Load(logits, candidates));
  if (allowed != nullptr) Restrict(*allowed, candidates);
  TROUPE_RETURN_IF_ERROR(AddBiases(candidates));
  ApplyPenalties(candidates);
  // min_element: of equal ones the first, which kMoreLikely makes the lowest id anyway.
  const Candidate best = *std::min_element(candidates.begin(), candidates.end(), kMoreLikely);
  if (best.logit == -std::numeric_limits<float>::infinity()) {
    return InvalidArgument("all {} tokens are banned", candidates.size());
  }
  if (!std::isfinite(best.logit)) {
    return InvalidArgument("bias or penalties make the logit of token {} infinite", best.id);
  }
  if (options_.temperature == 0) return best.id;
  KeepTopK(candidates);
  KeepTopPAndMinP(best.logit, candidates);
  const float likeliest = ExcludeTopChoices(best.logit, position, candidates);
  return Draw(likeliest, UniformAt(options_.seed, position), candidates);
}

Status Sampler::Load(std::span<const float> logits, Candidates& candidates) {
  if (logits.empty()) return InvalidArgument("no logits to sample from");
  candidates.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity()) {
      return InvalidArgument("the logit of token {} of {} is {}", i, logits.size(), logits[i]);
    }
    candidates[i] = {.id = static_cast<TokenId>(i), .logit = logits[i]};
  }
  return OkStatus();
}

void Sampler::Restrict(const TokenSet& allowed, Candidates& candidates) {
  for (Candidate& c : candidates) {
    if (!allowed.Has(c.id)) c.logit = -std::numeric_limits<float>::infinity();
  }
}

Status Sampler::AddBiases(Candidates& candidates) const {
  for (const auto& [id, bias] : options_.logit_bias) {
    if (static_cast<std::size_t>(id) >= candidates.size()) {
      return InvalidArgument("bias for token {}, but there are {} tokens", id, candidates.size());
    }
    candidates[static_cast<std::size_t>(id)].logit += bias;
  }
  return OkStatus();
}

void Sampler::ApplyPenalties(Candidates& candidates) const {
  const auto repetition = static_cast<float>(options_.repetition_penalty);
  for (const auto& [id, count] : recent_count_) {
    if (static_cast<std::size_t>(id) >= candidates.size()) continue;
    float& logit = candidates[static_cast<std::size_t>(id)].logit;
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(count * options_.frequency_penalty + options_.presence_penalty);
  }
  if (!dry_) return;
  for (const auto& [id, penalty] : dry_->Penalties()) {
    if (static_cast<std::size_t>(id) < candidates.size()) {
      candidates[static_cast<std::size_t>(id)].logit -= penalty;
    }
  }
}

void Sampler::KeepTopK(Candidates& candidates) const {
  const std::size_t k = options_.top_k;
  if (k == 0 || k >= candidates.size()) return;
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(k);
  std::partial_sort(candidates.begin(), end, candidates.end(), kMoreLikely);
  candidates.erase(end, candidates.end());
}

void Sampler::KeepTopPAndMinP(float best, Candidates& candidates) const {
  if (options_.top_p >= 1 && options_.min_p <= 0) return;
  double total = 0;
  for (Candidate& c : candidates) {
    c.weight = ExactExp(static_cast<double>(c.logit) - static_cast<double>(best));
    total += c.weight;
  }
  // Both rules keep the first tokens of the list sorted by weight. A weight below this bound is
  // never among them: all such weights together are less than what top-p may leave out. So only a
  // few of 150,000 tokens need sorting.
  const double left_out = (1 - options_.top_p) * total / static_cast<double>(candidates.size());
  const double bound = std::max(options_.min_p, options_.top_p < 1 ? left_out : 0);
  std::erase_if(candidates, [&](const Candidate& c) { return c.weight < bound; });
  if (options_.top_p >= 1) return;
  std::sort(candidates.begin(), candidates.end(), kMoreLikely);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || sum < options_.top_p * total)) {
    sum += candidates[kept++].weight;
  }
  candidates.resize(kept);
}

// XTC. Whether it happens is another draw than the token's, and belongs to the position as well.
// Returns the highest logit that is left.
float Sampler::ExcludeTopChoices(float best, std::uint64_t position, Candidates& candidates) const {
  constexpr std::uint64_t kOtherDraw = 0x5851f42d4c957f2d;
  const XtcOptions& xtc = options_.xtc;
  if (xtc.probability <= 0 || candidates.size() < 2) return best;
  if (UniformAt(options_.seed ^ kOtherDraw, position) >= xtc.probability) return best;
  double total = 0;
  for (Candidate& c : candidates) {
    c.weight = ExactExp(static_cast<double>(c.logit) - static_cast<double>(best));
    total += c.weight;
  }
  // What may not be chosen weighs nothing, and is not likely where the threshold is 0.
  const auto is_likely = [&](const Candidate& c) {
    return c.weight > 0 && c.weight >= xtc.threshold * total;
  };
  const Candidate* least = nullptr;
  for (const Candidate& c : candidates) {
    if (is_likely(c) && (least == nullptr || kMoreLikely(*least, c))) least = &c;
  }
  if (least == nullptr) return best;
  const Candidate stays = *least;  // and is the likeliest of what is left
  std::erase_if(candidates, [&](const Candidate& c) { return is_likely(c) && c.id != stays.id; });
  return stays.logit;
}

// Inverts the cumulative distribution, in the order of the candidates: a fixed order, so that a
// seed gives the same token everywhere.
TokenId Sampler::Draw(float best, double uniform, Candidates& candidates) const {
  double total = 0;
  for (Candidate& c : candidates) {
    c.weight =
        ExactExp((static_cast<double>(c.logit) - static_cast<double>(best)) / options_.temperature);
    total += c.weight;
  }
  double left = uniform * total;
  for (const Candidate& c : candidates) {
    left -= c.weight;
    if (left < 0) return c.id;
  }
  // Rounding can leave a rest after the last token: take the last one that has any weight.
  const auto last = std::find_if(candidates.rbegin(), candidates.rend(),
                                 [](const Candidate& c) { return c.weight > 0; });
  TROUPE_CHECK(last != candidates.rend());  // the best one weighs 1
  return last->id;
}

}  // namespace troupe
