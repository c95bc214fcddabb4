// Expert activation paths (EAP), the common baseline: how often each expert followed each expert of
// the layer before, counted as tokens pass. Needs no scores, and knows nothing of the token at hand
// but its path. Guesses end where a gate's do (gate_guesses.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

// What was counted of one layer.
struct SeenPaths {
  std::uint32_t layer = 0;
  std::vector<float> follows;  // experts x experts: a row an expert of the layer before

  bool operator==(const SeenPaths&) const = default;
};

// How often each expert was used, by ExpertGrid::Index, as far as paths tell: of the first layer
// with experts by what followed them, of the others by what they followed. Only ratios within a
// layer mean anything.
std::vector<double> UsesIn(std::span<const SeenPaths> seen, ExpertGrid grid);

class ActivationPath final : public Predictor {
 public:
  static Bytes BytesFor(ExpertGrid grid) {
    return Bytes(grid.Count() * grid.experts * sizeof(float));
  }

  // Begins with what was seen in another run; what is for other models is left out.
  ActivationPath(ExpertGrid grid, std::uint32_t experts_per_token,
                 std::span<const SeenPaths> seen = {});

  std::string_view name() const override { return "eap"; }
  void OnChosen(const LayerChoices& chosen) override;
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t ahead,
                             const GateScores& forecast) override;

  // Everything counted, of layers of which anything was.
  std::vector<SeenPaths> Seen() const;

 private:
  std::size_t LayerSize() const { return std::size_t{grid_.experts} * grid_.experts; }
  float& Follows(std::uint32_t layer, std::uint32_t before, std::uint32_t after) {
    return follows_[(std::size_t{layer} * grid_.experts + before) * grid_.experts + after];
  }

  ExpertGrid grid_;
  std::uint32_t experts_per_token_;
  std::vector<float> follows_;  // by layer, expert of the layer before, expert
  void CountPaths(std::uint32_t layer, std::span<const ExpertDemand> before,
                  std::span<const ExpertDemand> after);

  // Of the layer that chose last: by all rows, and by each sequence's.
  std::vector<ExpertDemand> last_;
  struct OfSequence {
    SequenceId sequence = 0;
    std::vector<ExpertDemand> demands;
  };
  std::vector<OfSequence> last_by_sequence_;
  std::uint32_t last_layer_ = 0;
};

}  // namespace troupe
