#include "model/gate_probe.h"

#include <cmath>

#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"

namespace troupe {

void RankByGate(const ModelConfig& config, const MoeWeights& w, std::span<float> logits) {
  const TopExpertsParams& routing = config.moe.routing;
  if (routing.score != GateScore::kSigmoid && w.selection_bias == nullptr) return;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (routing.score == GateScore::kSigmoid) logits[i] = 1 / (1 + std::exp(-logits[i]));
    if (w.selection_bias != nullptr) logits[i] += w.selection_bias[i % routing.experts];
  }
}

GateScores GateProbe::Ask(std::uint32_t layer, const float* rows, std::size_t tokens) {
  const LayerWeights& w = weights_.layers[layer];
  const std::size_t width = config_.width;
  const std::uint32_t experts = config_.moe.routing.experts;
  normed_.resize(tokens * width);
  scores_.resize(tokens * experts);
  codes_.resize(width % kGroupCols == 0 ? ActivationBytes(tokens, width) / sizeof(float) : 0);
  const Activations input = MakeActivations(normed_.data(), width, tokens, width,
                                            std::as_writable_bytes(std::span(codes_)));
  for (std::size_t t = 0; t < tokens; ++t) {
    RmsNorm(rows + t * width, w.RouterNorm(), config_.norm_epsilon, normed_.data() + t * width,
            width);
    if (input.groups != nullptr) QuantizeActivations(input, t, 1);
  }
  region_.Add(w.moe.router, input, {}, scores_.data(), experts);
  region_.Run(pool_);
  RankByGate(config_, w.moe, scores_);
  return {.experts = experts, .scores = scores_};
}

}  // namespace troupe
