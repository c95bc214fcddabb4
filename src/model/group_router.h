// A group gate in a pass: for rows that need not be exact it says which groups are looked into, and
// only these groups' rows of the router are multiplied. Rows keep the bytes that they get alone:
// nothing here looks at a neighbour. Learning the gate is expert/gate's; the truth of what this
// computes is expert/gate/group_scores_reference.h. Why and what it saves:
// docs/design/group-gate.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "expert/gate/group_gate.h"
#include "io/aligned_buffer.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/layer_range.h"
#include "model/matmul_region.h"
#include "model/weights.h"

namespace troupe {

// What it did so far.
struct GroupRouting {
  std::uint64_t decisions = 0;  // rows of layers that were routed by groups
  // Rows of matrices that were multiplied for them, groups' and experts', and those that the router
  // has.
  std::uint64_t rows_multiplied = 0;
  std::uint64_t rows_of_router = 0;

  bool operator==(const GroupRouting&) const = default;
};

class GroupRouter {
 public:
  // Why such a model's router cannot be replaced; Ok if it can.
  static Status CheckModel(const ModelConfig& config);

  struct Shape {
    GateChoice choice;  // with a number of groups
    LayerRange layers;
    std::size_t chunk = 1;  // rows of a pass at most
  };
  // As if routers were F32, which most are; others take less.
  static Bytes BytesFor(const ModelConfig& config, const GroupGate& gate, const Shape& shape);
  // `gate` is valid, of a model of this shape, and its groups hold enough experts. The weights need
  // to last only for the call.
  static Result<GroupRouter> Create(const ModelConfig& config, const ModelWeights& weights,
                                    const GroupGate& gate, const Shape& shape);

  const GateChoice& choice() const { return choice_; }
  const GroupRouting& done() const { return done_; }

  // False: every row of the pass must be exact, and no more is to be asked.
  bool BeginPass(Batch batch, std::size_t width);
  bool Routes(std::size_t row) const { return place_of_[row] != kExact; }

  // Of a layer, in this order: the groups' product; when that has run, the products of the experts
  // of the groups to look into.
  void AddGroups(std::uint32_t layer, const Activations& input, MatMulRegion& region);
  void AddExperts(std::uint32_t layer, const Activations& input, MatMulRegion& region);
  // When those have run: scores of all experts, and the choice among those looked at. What others
  // have is an even part of their group's share. False if arithmetic has broken down. Any thread.
  [[nodiscard]] bool Choose(std::uint32_t layer, std::size_t row, const TopExpertsParams& routing,
                            std::span<float> scores, std::span<ExpertChoice> chosen) const;
  // Logits that fit these scores: the router's own of experts looked at.
  void LogitsOf(std::uint32_t layer, std::size_t row, std::span<const float> scores,
                std::span<float> logits) const;

 private:
  static constexpr std::uint32_t kExact = ~std::uint32_t{0};

  struct Layer {
    Linear groups;
    std::vector<Linear> experts;  // a group's rows of the router
    ExpertGroups of;
  };

  GroupRouter(const GroupGate& gate, const Shape& shape);
  static std::size_t ScratchFloats(const GroupGate& gate, const Shape& shape);
  static std::size_t ScratchIndices(const Shape& shape);
  void LookInto(std::span<const float> shares, std::span<std::uint32_t> looked);
  std::span<const std::uint32_t> LookedBy(std::size_t place) const {
    return std::span(looked_).subspan(place * choice_.looked, choice_.looked);
  }
  // Logits of the experts of a group that a row looks into.
  const float* LogitsAt(std::size_t place, std::size_t i) const {
    return logits_.data() + logits_at_[place * choice_.looked + i];
  }

  GateChoice choice_;
  std::uint32_t groups_;
  AlignedBuffer buffer_;
  std::vector<Layer> layers_;             // by number; empty where there is none
  std::vector<float> shares_;             // [place][group]; logits before AddExperts
  std::vector<float> logits_;             // of experts looked at, group after group, row after row
  std::vector<float> keys_;               // [group]
  std::vector<std::uint32_t> rows_;       // [place], of the pass
  std::vector<std::uint32_t> place_of_;   // [row]
  std::vector<std::uint32_t> looked_;     // [place][i], groups, rising
  std::vector<std::uint32_t> logits_at_;  // [place][i], where they begin
  std::vector<std::uint32_t> by_group_;   // rows that look into each group, group after group
  GroupRouting done_;
};

}  // namespace troupe
