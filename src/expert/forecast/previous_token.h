// Guesses that a layer will choose what it chose for the token before, each sequence its own.
#pragma once

#include <algorithm>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

class PreviousToken final : public Predictor {
 public:
  explicit PreviousToken(ExpertGrid grid) : grid_(grid) {}

  std::string_view name() const override { return "previous"; }
  void OnPassBegins(const PassFacts& pass) override {
    under_way_.clear();
    for (const RowGroupFacts& group : pass.groups) under_way_.push_back(group.sequence);
  }
  void OnChosen(const LayerChoices& chosen) override {
    for (const SequenceDemands& one : chosen.by_sequence()) {
      if (one.sequence == kNoSequence) continue;
      if (last_.size() <= one.sequence) last_.resize(one.sequence + 1);
      ByLayer& layers = last_[one.sequence];
      layers.resize(grid_.layers);
      layers[chosen.layer()].assign(one.demands.begin(), one.demands.end());
    }
  }
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t, const GateScores&) override {
    std::vector<Guess> guesses;
    for (const SequenceId sequence : under_way_) Add(sequence, layer, guesses);
    std::ranges::stable_sort(guesses, std::greater(), &Guess::weight);
    return guesses;
  }

 private:
  using ByLayer = std::vector<std::vector<ExpertDemand>>;

  // Sums over sequences, each expert once.
  void Add(SequenceId sequence, std::uint32_t layer, std::vector<Guess>& guesses) const {
    if (sequence >= last_.size() || last_[sequence].empty()) return;
    for (const ExpertDemand& chosen : last_[sequence][layer]) {
      const auto weight = static_cast<float>(chosen.tokens);
      const auto known = std::ranges::find(guesses, chosen.expert, &Guess::expert);
      if (known != guesses.end()) {
        known->weight += weight;
      } else {
        guesses.push_back({.expert = chosen.expert, .weight = weight, .expected = true});
      }
    }
  }

  ExpertGrid grid_;
  std::vector<ByLayer> last_;                // by sequence
  std::vector<SequenceId> under_way_ = {0};  // in the pass; before the first one, the only sequence
};

}  // namespace troupe
