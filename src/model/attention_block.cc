// Attention with grouped queries: project, normalise and rotate where the family does, store,
// attend, project back.
#include "kernels/kv_layout.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "model/forward_pass.h"

namespace troupe {
namespace {

// All heads of one token: normalised as the family does it, then rotated.
void PrepareHeads(const ModelConfig& config, const RopeTable& rope, std::size_t token,
                  const float* norm, std::uint32_t heads, float* row) {
  const std::size_t dim = config.attention.key_dim;
  if (config.attention.qk_norm == QkNorm::kWhole) {
    RmsNorm(row, norm, config.norm_epsilon, row, heads * dim);
  }
  for (std::uint32_t h = 0; h < heads; ++h) {
    float* head = row + h * dim;
    if (config.attention.qk_norm == QkNorm::kPerHead) {
      RmsNorm(head, norm, config.norm_epsilon, head, dim);
    }
    ApplyRope(rope, token, head);
  }
}

}  // namespace

void ForwardPass::AttentionBlock(std::uint32_t layer, const AttentionWeights& w) {
  const AttentionConfig& a = config_.attention;
  const std::size_t k_row = config_.KeyRow(), v_row = config_.ValueRow();
  NormaliseStream(w.norm);
  const Activations normed = ws_.normed.Of(tokens_);
  region_.Add(w.q.weight, normed, {}, ws_.q.values, ws_.q.cols);
  region_.Add(w.k.weight, normed, {}, ws_.k, k_row);
  region_.Add(w.v.weight, normed, {}, ws_.v, v_row);
  region_.Run(pool_);
  AddBias(w.q.bias, ws_.q.values, ws_.q.cols);
  AddBias(w.k.bias, ws_.k, k_row);
  AddBias(w.v.bias, ws_.v, v_row);

  const RopeTable& rope = ws_.rope.front();
  ForRows(tokens_, [&](std::size_t t) {
    float* k = ws_.k + t * k_row;
    PrepareHeads(config_, rope, t, w.q_norm, a.heads, ws_.q.Row(t));
    PrepareHeads(config_, rope, t, w.k_norm, a.kv_heads, k);
    const KvPlace to = PlaceOf(layer, t);
    for (std::uint32_t h = 0; h < a.kv_heads; ++h) {
      const float* v = ws_.v + t * v_row + h * a.value_dim;
      StoreKeys(kv_, to.page, h, to.position, 1, k + h * a.key_dim, k_row);
      StoreValues(kv_, to.page, h, to.position, 1, v, v_row);
    }
  });
  Attend(layer, ws_.q.values, ws_.q.cols, ws_.attended.values, ws_.attended.cols);
  ProjectAttended(w.out);
}

}  // namespace troupe
