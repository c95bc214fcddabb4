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
void PrepareHeads(const AttentionConfig& a, float epsilon, const RopeTable& rope, std::size_t token,
                  const float* norm, std::uint32_t heads, float* row) {
  const std::size_t dim = a.key_dim;
  if (a.qk_norm == QkNorm::kWhole) RmsNorm(row, norm, epsilon, row, heads * dim);
  const bool per_head = a.qk_norm != QkNorm::kWhole && norm != nullptr;
  const bool rotated = a.qk_norm == QkNorm::kPerHeadRotated;
  for (std::uint32_t h = 0; h < heads; ++h) {
    float* head = row + h * dim;
    if (per_head && !rotated) RmsNorm(head, norm, epsilon, head, dim);
    ApplyRope(rope, token, head);
    if (rotated) RmsNorm(head, norm, epsilon, head, dim);
  }
}

}  // namespace

void ForwardPass::AttentionBlock(std::uint32_t layer, const AttentionWeights& w) {
  const AttentionConfig& a = config_.AttentionOf(layer);
  const std::size_t k_row = a.KeyRow(), v_row = a.ValueRow();
  const Rows q = ws_.q.Narrowed(std::size_t{a.heads} * a.key_dim);
  const Rows attended = ws_.attended.Narrowed(std::size_t{a.heads} * a.value_dim);
  NormaliseStream(w.norm);
  const Activations normed = ws_.normed.Of(tokens_);
  // Where they are gated, each head's query and its gate lie side by side.
  const std::size_t q_row = w.q.weight.rows;
  float* const projected = a.gated ? ws_.q_gated : q.values;
  region_.Add(w.q, normed, {}, projected, q_row);
  region_.Add(w.k, normed, {}, ws_.k, k_row);
  const bool has_values = w.v.weight.rows > 0;
  if (has_values) region_.Add(w.v, normed, {}, ws_.v, v_row);
  region_.Run(pool_);

  const RopeTable& rope = RopeOf(layer);
  const float epsilon = config_.norm_epsilon;
  ForRows(tokens_, [&](std::size_t t) {
    float* const k = ws_.k + t * k_row;
    float* const v = ws_.v + t * v_row;
    for (std::uint32_t h = 0; a.gated && h < a.heads; ++h) {
      std::copy_n(projected + t * q_row + 2 * h * a.key_dim, a.key_dim, q.Row(t) + h * a.key_dim);
    }
    if (!has_values) std::copy_n(k, v_row, v);
    PrepareHeads(a, epsilon, rope, t, w.q_norm, a.heads, q.Row(t));
    PrepareHeads(a, epsilon, rope, t, w.k_norm, a.kv_heads, k);
    const KvPlace to = PlaceOf(layer, t);
    for (std::uint32_t h = 0; h < a.kv_heads; ++h) {
      float* const value = v + h * a.value_dim;
      if (a.values_normed) RmsNorm(value, nullptr, epsilon, value, a.value_dim);
      StoreKeys(to.layout, to.page, h, to.position, 1, k + h * a.key_dim, k_row);
      StoreValues(to.layout, to.page, h, to.position, 1, value, v_row);
    }
  });
  Attend(layer, w.sinks, q.values, q.cols, attended.values, attended.cols);
  if (a.gated) {
    ForRows(tokens_, [&](std::size_t t) {
      for (std::uint32_t h = 0; h < a.heads; ++h) {
        MultiplySigmoid(projected + t * q_row + (2 * h + 1) * a.key_dim,
                        attended.Row(t) + h * a.value_dim, a.value_dim);
      }
    });
  }
  ProjectAttended(attended, w.out, w.answer_norm);
}

}  // namespace troupe
