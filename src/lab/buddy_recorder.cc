#include "lab/buddy_recorder.h"

#include "base/check.h"

namespace troupe {

BuddyRecorder::BuddyRecorder(const ModelConfig& config, const WarmUp& warm_up)
    : first_layer_(config.moe.leading_dense),
      top_k_(config.moe.routing.top_k),
      warm_up_(warm_up),
      counts_({.layers = config.layers, .experts = config.moe.routing.experts}),
      entropies_(config.layers),
      experts_(top_k_),
      weights_(top_k_),
      slots_(top_k_) {}

void BuddyRecorder::PassBegins(const PassFacts& pass) {
  pass_tokens_ = pass.rows();
  positions_.clear();
  for (const RowGroupFacts& group : pass.groups) {
    for (std::uint32_t row = 0; row < group.rows; ++row) {
      positions_.push_back(group.position + row);
    }
  }
}

void BuddyRecorder::Routed(std::uint32_t layer, std::span<const ExpertChoice> chosen,
                           std::span<const float> /*scores*/) {
  TROUPE_CHECK(chosen.size() == pass_tokens_ * top_k_);
  for (std::size_t t = 0; t < pass_tokens_; ++t) {
    for (std::uint32_t i = 0; i < top_k_; ++i) {
      const ExpertChoice& choice = chosen[t * top_k_ + i];
      experts_[i] = choice.expert;
      weights_[i] = choice.weight;
      slots_[i] = {.expert = choice.expert, .weight = choice.weight};
    }
    counts_.Add(layer, experts_, weights_,
                WarmUpCount(positions_[t], warm_up_.tokens, warm_up_.least));
    entropies_[layer].Add(EvennessOf(slots_).entropy);
  }
}

void BuddyRecorder::PassEnded() { tokens_ += pass_tokens_; }

BuddyProfile BuddyRecorder::Profile(const BuddyOptions& options) const {
  BuddyProfile profile{.fingerprint = {},
                       .text = {},
                       .tokens = tokens_,
                       .top_k = top_k_,
                       .warm_up = warm_up_,
                       .options = options,
                       .buddies = MakeBuddyLists(counts_, options),
                       .layers = {}};
  const ExpertGrid grid = counts_.grid();
  for (std::uint32_t layer = first_layer_; layer < grid.layers; ++layer) {
    BuddyLayer found{.layer = layer, .activations = {}, .entropy = {}};
    for (std::uint32_t e = 0; e < grid.experts; ++e) {
      found.activations.push_back(counts_.Activations({layer, e}));
    }
    for (std::uint32_t percent = 0; percent <= 100; percent += BuddyProfile::kPercentStep) {
      found.entropy.push_back(entropies_[layer].Percentile(percent / 100.0));
    }
    profile.layers.push_back(std::move(found));
  }
  return profile;
}

}  // namespace troupe
