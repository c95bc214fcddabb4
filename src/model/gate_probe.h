// What a layer's gate says of any rows of the stream, whether they are its own input or not: for
// forecasts and measurements. The rows go through the layer's norm first, as its own input does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "expert/forecast/predictor.h"
#include "model/config.h"
#include "model/matmul_region.h"
#include "model/weights.h"

namespace troupe {

// In place: from a gate's logits to what selection goes by. That is the logits themselves unless
// the family's scores or biases order the experts otherwise. Groups are left out of account.
void RankByGate(const ModelConfig& config, const MoeWeights& w, std::span<float> logits);

class GateProbe {
 public:
  // All three must outlive it.
  GateProbe(const ModelConfig& config, const ModelWeights& weights, ThreadPool& pool)
      : config_(config), weights_(weights), pool_(pool) {}

  // Of a layer that has experts. The answer is good until the next call.
  GateScores Ask(std::uint32_t layer, const float* rows, std::size_t tokens);

 private:
  const ModelConfig& config_;
  const ModelWeights& weights_;
  ThreadPool& pool_;
  MatMulRegion region_;
  std::vector<float> normed_, scores_;
  std::vector<float> codes_;  // memory for the 8-bit form
};

}  // namespace troupe
