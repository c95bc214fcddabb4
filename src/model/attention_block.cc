// Attention with grouped queries: project, normalise and rotate where the family does, store,
// attend, gate where the family does, project back.
#include <algorithm>

#include "kernels/gates.h"
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
  const bool per_head = config.attention.qk_norm != QkNorm::kWhole && norm != nullptr;
  for (std::uint32_t h = 0; h < heads; ++h) {
    float* head = row + h * dim;
    if (per_head) {
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
  // Where they are gated, each head's query and its gate lie side by side.
  const std::size_t q_row = w.q.weight.rows;
  float* const projected = a.gated ? ws_.q_gated : ws_.q.values;
  region_.Add(w.q, normed, {}, projected, q_row);
  region_.Add(w.k, normed, {}, ws_.k, k_row);
  region_.Add(w.v, normed, {}, ws_.v, v_row);
  region_.Run(pool_);

  const RopeTable& rope = ws_.rope.front();
  ForRows(tokens_, [&](std::size_t t) {
    float* k = ws_.k + t * k_row;
    for (std::uint32_t h = 0; a.gated && h < a.heads; ++h) {
      std::copy_n(projected + t * q_row + 2 * h * a.key_dim, a.key_dim,
                  ws_.q.Row(t) + h * a.key_dim);
    }
    PrepareHeads(config_, rope, t, w.q_norm, a.heads, ws_.q.Row(t));
    PrepareHeads(config_, rope, t, w.k_norm, a.kv_heads, k);
    const KvPlace to = PlaceOf(layer, t);
    for (std::uint32_t h = 0; h < a.kv_heads; ++h) {
      const float* v = ws_.v + t * v_row + h * a.value_dim;
      StoreKeys(kv_, to.page, h, to.position, 1, k + h * a.key_dim, k_row);
      StoreValues(kv_, to.page, h, to.position, 1, v, v_row);
    }
  });
  Attend(layer, w.sinks, ws_.q.values, ws_.q.cols, ws_.attended.values, ws_.attended.cols);
  if (a.gated) {
    ForRows(tokens_, [&](std::size_t t) {
      for (std::uint32_t h = 0; h < a.heads; ++h) {
        MultiplySigmoid(projected + t * q_row + (2 * h + 1) * a.key_dim,
                        ws_.attended.Row(t) + h * a.value_dim, a.value_dim);
      }
    });
  }
  ProjectAttended(ws_.attended, w.out);
}

}  // namespace troupe
