#include "model/group_router.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "kernels/softmax.h"
#include "kernels/top_experts.h"
#include "quant/panel.h"

namespace troupe {
namespace {

// Added to the score of an expert that is not looked at: below any score.
constexpr float kClosed = -2.0f;

std::size_t LargestGroup(const GroupGate& gate) {
  std::size_t most = 0;
  for (const GroupGateLayer& layer : gate.layers) {
    for (const auto& group : layer.groups) most = std::max(most, group.size());
  }
  return most;
}

std::uint64_t Aligned(std::size_t bytes) { return AlignUp(bytes, kCacheLine.count()); }

std::uint64_t GateLayerBytes(const GroupGateLayer& layer, std::size_t width, TensorType router) {
  std::uint64_t bytes = Aligned(PanelBytes(TensorType::kF32, layer.groups.size(), width)) +
                        Aligned(layer.groups.size() * sizeof(float));
  for (const auto& group : layer.groups) {
    bytes +=
        Aligned(PanelBytes(router, group.size(), width)) + Aligned(group.size() * sizeof(float));
  }
  return bytes;
}

// Hands out parts of a buffer, each on a cache line of its own.
class Parts {
 public:
  explicit Parts(std::span<std::byte> left) : left_(left) {}

  std::span<std::byte> Take(std::size_t bytes) {
    const std::span<std::byte> part = left_.first(bytes);
    left_ = left_.subspan(Aligned(bytes));
    return part;
  }
  PanelMatrix Panels(TensorType type, std::size_t rows, std::size_t cols,
                     std::span<const std::byte> source) {
    const std::span<std::byte> panels = Take(PanelBytes(type, rows, cols));
    PackPanels(type, rows, cols, source, panels);
    return {.type = type, .rows = rows, .cols = cols, .data = panels.data()};
  }
  const float* Floats(std::span<const float> values) {
    const std::span<std::byte> part = Take(values.size_bytes());
    std::memcpy(part.data(), values.data(), values.size_bytes());
    return reinterpret_cast<const float*>(part.data());
  }

 private:
  std::span<std::byte> left_;
};

// The router's rows of a group, bytes as they are.
Linear RowsOf(const Linear& router, std::span<const std::uint32_t> group, Parts& parts) {
  const PanelMatrix& matrix = router.weight;
  const std::size_t row_bytes = RowBytes(matrix.type, matrix.cols).count();
  std::vector<std::byte> rows(group.size() * row_bytes);
  std::vector<float> bias;
  for (std::size_t i = 0; i < group.size(); ++i) {
    UnpackRow(matrix, group[i], std::span(rows).subspan(i * row_bytes, row_bytes));
    if (router.bias != nullptr) bias.push_back(router.bias[group[i]]);
  }
  PanelMatrix rows_of = parts.Panels(matrix.type, group.size(), matrix.cols, rows);
  rows_of.factor = matrix.factor;
  return {.weight = rows_of, .bias = bias.empty() ? nullptr : parts.Floats(bias)};
}

}  // namespace

Status GroupRouter::CheckModel(const ModelConfig& config) {
  const TopExpertsParams& routing = config.moe.routing;
  if (routing.experts == 0) return InvalidArgument("the model has no experts");
  if (config.encoder) {
    return Error(Code::kUnimplemented,
                 "an encoder-decoder, and a group gate is for rows that go through all layers");
  }
  if (routing.groups_used < routing.groups) {
    return InvalidArgument("the model's router looks into {} of {} groups of experts by itself",
                           routing.groups_used, routing.groups);
  }
  if (routing.score != GateScore::kSoftmax || config.moe.selection_bias != Presence::kNone) {
    return InvalidArgument(
        "the model's router chooses by {}, and a group gate stands in for a softmax alone",
        routing.score != GateScore::kSoftmax ? "sigmoids" : "biased scores");
  }
  return OkStatus();
}

std::size_t GroupRouter::ScratchFloats(const GroupGate& gate, const Shape& shape) {
  return shape.chunk * (gate.groups + shape.choice.looked * LargestGroup(gate)) + gate.groups;
}

std::size_t GroupRouter::ScratchIndices(const Shape& shape) {
  return shape.chunk * (2 + 3 * std::size_t{shape.choice.looked});
}

Bytes GroupRouter::BytesFor(const ModelConfig& config, const GroupGate& gate, const Shape& shape) {
  std::uint64_t bytes = 0;
  for (const GroupGateLayer& layer : gate.layers) {
    if (layer.layer < shape.layers.first || layer.layer >= shape.layers.end) continue;
    bytes += GateLayerBytes(layer, config.width, TensorType::kF32);
  }
  return Bytes(bytes + ScratchFloats(gate, shape) * sizeof(float) +
               ScratchIndices(shape) * sizeof(std::uint32_t));
}

GroupRouter::GroupRouter(const GroupGate& gate, const Shape& shape)
    : choice_(shape.choice),
      groups_(gate.groups),
      shares_(shape.chunk * gate.groups),
      logits_(shape.chunk * shape.choice.looked * LargestGroup(gate)),
      keys_(gate.groups),
      place_of_(shape.chunk),
      looked_(shape.chunk * shape.choice.looked),
      logits_at_(shape.chunk * shape.choice.looked),
      by_group_(shape.chunk * shape.choice.looked) {
  rows_.reserve(shape.chunk);
}

Result<GroupRouter> GroupRouter::Create(const ModelConfig& config, const ModelWeights& weights,
                                        const GroupGate& gate, const Shape& shape) {
  TROUPE_CHECK(gate.width == config.width && gate.experts == config.moe.routing.experts);
  TROUPE_CHECK(shape.choice.looked >= gate.LeastLooked(config.moe.routing.top_k) &&
               shape.choice.looked <= gate.groups);
  GroupRouter router(gate, shape);
  router.layers_.resize(config.layers);
  std::uint64_t bytes = 0;
  for (const GroupGateLayer& layer : gate.layers) {
    if (layer.layer < shape.layers.first || layer.layer >= shape.layers.end) continue;
    bytes +=
        GateLayerBytes(layer, config.width, weights.layers[layer.layer].moe.router.weight.type);
  }
  TROUPE_ASSIGN_OR_RETURN(router.buffer_, AlignedBuffer::Allocate(Bytes(bytes)));
  Parts parts(router.buffer_.bytes());
  for (const GroupGateLayer& layer : gate.layers) {
    if (layer.layer < shape.layers.first || layer.layer >= shape.layers.end) continue;
    Layer& made = router.layers_[layer.layer];
    made.of = layer.groups;
    made.groups = {.weight = parts.Panels(TensorType::kF32, gate.groups, gate.width,
                                          std::as_bytes(std::span(layer.weights))),
                   .bias = parts.Floats(layer.bias)};
    for (const auto& group : layer.groups) {
      made.experts.push_back(RowsOf(weights.layers[layer.layer].moe.router, group, parts));
    }
  }
  return router;
}

bool GroupRouter::BeginPass(Batch batch, std::size_t width) {
  rows_.clear();
  std::uint32_t row = 0;
  for (const RowGroup& group : batch) {
    for (std::size_t i = 0; i < group.Rows(width); ++i, ++row) {
      place_of_[row] = group.exact ? kExact : static_cast<std::uint32_t>(rows_.size());
      if (!group.exact) rows_.push_back(row);
    }
  }
  return !rows_.empty();
}

void GroupRouter::AddGroups(std::uint32_t layer, const Activations& input, MatMulRegion& region) {
  TROUPE_CHECK(!layers_[layer].of.empty());
  region.Add(layers_[layer].groups, input, rows_, shares_.data(), groups_);
}

// Best first would be as good; rising, a row's logits lie in the order of its groups.
void GroupRouter::LookInto(std::span<const float> shares, std::span<std::uint32_t> looked) {
  // What is no number is as good as any: Choose will say that arithmetic has broken down.
  std::ranges::transform(shares, keys_.begin(), [](float share) { return share > 0 ? share : 0; });
  for (std::uint32_t& group : looked) {
    const auto best = std::ranges::max_element(keys_);
    group = static_cast<std::uint32_t>(best - keys_.begin());
    *best = kClosed;
  }
  std::ranges::sort(looked);
}

void GroupRouter::AddExperts(std::uint32_t layer, const Activations& input, MatMulRegion& region) {
  const Layer& of = layers_[layer];
  for (std::size_t place = 0; place < rows_.size(); ++place) {
    const std::span<float> shares = std::span(shares_).subspan(place * groups_, groups_);
    SoftmaxRow(shares.data(), groups_);
    LookInto(shares, std::span(looked_).subspan(place * choice_.looked, choice_.looked));
  }
  std::uint32_t rows = 0, floats = 0;
  for (std::uint32_t group = 0; group < groups_; ++group) {
    const auto size = static_cast<std::uint32_t>(of.of[group].size());
    const std::uint32_t first_row = rows, first_float = floats;
    for (std::size_t i = 0; i < rows_.size() * choice_.looked; ++i) {
      if (looked_[i] != group) continue;
      logits_at_[i] = floats;
      by_group_[rows++] = rows_[i / choice_.looked];
      floats += size;
    }
    if (rows == first_row) continue;
    region.Add(of.experts[group], input, std::span(by_group_).subspan(first_row, rows - first_row),
               logits_.data() + first_float, size);
  }
  done_.decisions += rows_.size();
  done_.rows_multiplied += rows_.size() * groups_ + floats;
  for (const auto& group : of.of) done_.rows_of_router += rows_.size() * group.size();
}

bool GroupRouter::Choose(std::uint32_t layer, std::size_t row, const TopExpertsParams& routing,
                         std::span<float> scores, std::span<ExpertChoice> chosen) const {
  const ExpertGroups& groups = layers_[layer].of;
  const std::size_t place = place_of_[row];
  const std::span<const float> shares = std::span(shares_).subspan(place * groups_, groups_);
  std::array<float, kMaxExperts> closed_storage, looked_storage;
  const std::span<float> closed = std::span(closed_storage).first(routing.experts);
  for (std::uint32_t g = 0; g < groups_; ++g) {
    const float even = shares[g] / static_cast<float>(groups[g].size());
    for (const std::uint32_t e : groups[g]) scores[e] = even, closed[e] = kClosed;
  }
  // The logits of what is looked at, all groups together or each alone, become parts of what the
  // group gate gives them.
  const std::span<const std::uint32_t> looked = LookedBy(place);
  const bool alone = choice_.fusion == GroupFusion::kProduct;
  for (std::size_t i = 0; i < looked.size();) {
    float share = 0;
    std::size_t count = 0;
    const std::size_t first = i;
    do {
      share += shares[looked[i]];
      const std::size_t size = groups[looked[i]].size();
      std::copy_n(LogitsAt(place, i), size, looked_storage.begin() + count);
      count += size;
    } while (++i < looked.size() && !alone);
    SoftmaxRow(looked_storage.data(), count);
    const float* part = looked_storage.data();
    for (std::size_t j = first; j < i; ++j) {
      for (const std::uint32_t e : groups[looked[j]]) scores[e] = share * *part++, closed[e] = 0;
    }
  }
  return ChooseByScores(routing, scores, closed, chosen);
}

void GroupRouter::LogitsOf(std::uint32_t layer, std::size_t row, std::span<const float> scores,
                           std::span<float> logits) const {
  constexpr float kLeastScore = 1e-30f;
  const ExpertGroups& groups = layers_[layer].of;
  const std::size_t place = place_of_[row];
  for (std::size_t e = 0; e < scores.size(); ++e) {
    logits[e] = std::log(std::max(scores[e], kLeastScore));
  }
  // Scores tell differences of logits; the best expert looked at tells the rest.
  const std::span<const std::uint32_t> looked = LookedBy(place);
  float best_score = 0, shift = 0;
  for (std::size_t i = 0; i < looked.size(); ++i) {
    const float* logit = LogitsAt(place, i);
    for (const std::uint32_t e : groups[looked[i]]) {
      if (scores[e] > best_score) best_score = scores[e], shift = *logit - logits[e];
      ++logit;
    }
  }
  for (float& logit : logits) logit += shift;
  for (std::size_t i = 0; i < looked.size(); ++i) {
    const float* logit = LogitsAt(place, i);
    for (const std::uint32_t e : groups[looked[i]]) logits[e] = *logit++;
  }
}

}  // namespace troupe
