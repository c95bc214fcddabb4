#include "model/forward_pass.h"

#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"

namespace troupe {

void ForwardPass::NormaliseStream(const float* weight) {
  const std::size_t width = config_.width;
  const Activations normed = ws_.normed.Of(tokens_);
  ForRows(tokens_, [&](std::size_t t) {
    RmsNorm(ws_.stream + t * width, weight, config_.norm_epsilon, ws_.normed.Row(t), width);
    if (normed.groups != nullptr) QuantizeActivations(normed, t, 1);
  });
}

void ForwardPass::QuantizeAll(const Activations& x) {
  if (x.groups == nullptr) return;
  ForRows(x.tokens, [&](std::size_t row) { QuantizeActivations(x, row, 1); });
}

void ForwardPass::AddBias(const float* bias, float* rows, std::size_t length) {
  if (bias == nullptr) return;
  for (std::size_t t = 0; t < tokens_; ++t) Add(bias, rows + t * length, length);
}

void ForwardPass::Attend(std::uint32_t layer, const float* q, std::size_t q_row, float* out,
                         std::size_t out_row) {
  const Attention attention({.layout = cache_.layout(),
                             .cache = cache_.Layer(layer),
                             .heads = config_.attention.heads,
                             .scale = config_.attention.scale,
                             .start = start_,
                             .tokens = tokens_,
                             .q = q,
                             .q_stride = q_row,
                             .out = out,
                             .out_stride = out_row},
                            pool_.threads(), ws_.attention_partials);
  pool_.Run(attention.tasks(), [&](std::size_t task, std::size_t thread) {
    attention.Run(task, ws_.AttentionScratch(thread));
  });
  if (attention.merges() > 0) {
    pool_.Run(attention.merges(), [&](std::size_t merge, std::size_t) { attention.Merge(merge); });
  }
}

void ForwardPass::ProjectAttended(const Linear& out) {
  const Activations attended = ws_.attended.Of(tokens_);
  QuantizeAll(attended);
  // The projection lands where the normed stream was: nobody reads that any more.
  region_.Add(out.weight, attended, {}, ws_.normed.values, config_.width);
  region_.Run(pool_);
  AddBias(out.bias, ws_.normed.values, config_.width);
  ForRows(tokens_, [&](std::size_t t) {
    Add(ws_.normed.Row(t), ws_.stream + t * config_.width, config_.width);
  });
}

}  // namespace troupe
