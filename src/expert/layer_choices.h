// What the rows of a pass chose in one layer: by expert, and by the sequence whose rows they are.
// What policies that keep a history of each sequence learn from.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "expert/expert_id.h"
#include "expert/pass_facts.h"

namespace troupe {

// Rows of one sequence that chose an expert.
struct Asker {
  SequenceId sequence = 0;
  std::uint32_t tokens = 0;

  bool operator==(const Asker&) const = default;
};

// Rows of a peer's pass: no history of ours is about them.
inline constexpr SequenceId kNoSequence = std::numeric_limits<SequenceId>::max();

inline std::uint32_t TokensOf(std::span<const Asker> askers) {
  std::uint32_t tokens = 0;
  for (const Asker& asker : askers) tokens += asker.tokens;
  return tokens;
}

// The experts that one sequence chose in a layer.
struct SequenceDemands {
  SequenceId sequence = 0;
  std::span<const ExpertDemand> demands;
};

class LayerChoices {
 public:
  // All rows are of one sequence.
  LayerChoices(std::uint32_t layer, std::span<const ExpertDemand> demands, SequenceId sequence = 0)
      : layer_(layer), whole_{.sequence = sequence, .demands = demands} {}
  // `by_sequence` adds up to `demands`, but for the rows of drafts, which nobody knows to be of a
  // sequence yet.
  LayerChoices(std::uint32_t layer, std::span<const ExpertDemand> demands,
               std::span<const SequenceDemands> by_sequence)
      : layer_(layer), whole_{.demands = demands}, split_(by_sequence) {}

  std::uint32_t layer() const { return layer_; }
  std::span<const ExpertDemand> demands() const { return whole_.demands; }
  std::span<const SequenceDemands> by_sequence() const {
    return split_.empty() ? std::span(&whole_, 1) : split_;
  }

 private:
  std::uint32_t layer_;
  SequenceDemands whole_;
  std::span<const SequenceDemands> split_;
};

}  // namespace troupe
