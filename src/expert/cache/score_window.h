// SMoE's eviction (Zhu et al., Eq. 3): gives up the expert with the least mean gate score over the
// last tokens, chosen by them or not, so that what stays may serve as a substitute, too. Experts
// asked for by the layer under way are shielded.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class ScoreWindow final : public EvictionPolicy {
 public:
  static constexpr std::uint32_t kWindow = 32;  // docs/design/substitution.md says why

  static Bytes BytesFor(ExpertGrid grid, std::uint32_t window);

  // The mean is over the last `window` tokens of a layer.
  ScoreWindow(ExpertGrid grid, std::uint32_t window);

  std::string_view name() const override { return "score"; }
  bool wants_scores() const override { return true; }
  void OnScored(std::uint32_t layer, std::span<const float> scores) override;
  void OnAsked(ExpertId id, std::span<const Asker> askers) override;
  std::size_t Choose(std::span<const ExpertId> candidates) override;

  double MeanScore(ExpertId id) const;
  std::uint64_t shielded() const override { return shielded_; }

 private:
  struct Layer {
    std::vector<float> rows;  // a ring of `window` tokens' scores
    std::vector<double> sums;
    std::uint32_t next = 0, held = 0;
  };
  void AddRow(Layer& layer, std::span<const float> row);
  void BeginLayer(std::uint32_t layer);

  ExpertGrid grid_;
  std::uint32_t window_;
  std::vector<Layer> layers_;
  std::vector<std::uint64_t> last_asked_;
  std::uint64_t asks_ = 0;
  std::uint32_t under_way_ = 0;  // the layer
  std::vector<bool> shield_;     // [expert] of that layer
  std::uint64_t shielded_ = 0;
};

}  // namespace troupe
