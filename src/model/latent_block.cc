// Multi-head latent attention, absorbed: instead of decompressing every stored row into keys and
// values a head, each query is taken into the space of the rows, and what it found there is taken
// out again. Prefill does the same as decode: decompressing would be cheaper for long prompts, but
// gives other bits, and a token's bits must not depend on how its prompt was cut.
#include <cstring>

#include "kernels/kv_layout.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "model/expert_mlp.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::LatentBlock(std::uint32_t layer, const MlaWeights& w) {
  const AttentionConfig& a = config_.attention;
  const MlaConfig& mla = *a.mla;
  const std::size_t heads = a.heads;
  const std::size_t head_dim = mla.nope_dim + mla.rope_dim;

  NormaliseStream(w.norm);
  const Activations normed = ws_.normed.Of(tokens_);
  region_.Add(w.kv_down, normed, {}, ws_.kv_row, a.key_dim);
  if (mla.q_rank > 0) {
    region_.Add(w.q_down, normed, {}, ws_.q_low.values, mla.q_rank);
    region_.Run(pool_);
    ForRows(tokens_, [&](std::size_t t) {
      float* row = ws_.q_low.Row(t);
      RmsNorm(row, w.q_down_norm, config_.norm_epsilon, row, mla.q_rank);
    });
    const Activations q_low = ws_.q_low.Of(tokens_);
    QuantizeRows(q_low, pool_);
    region_.Add(w.q, q_low, {}, ws_.q.values, ws_.q.cols);
  } else {
    region_.Add(w.q, normed, {}, ws_.q.values, ws_.q.cols);
  }
  region_.Run(pool_);

  const RopeTable& rope = ws_.rope.front();
  ForRows(tokens_, [&](std::size_t t) {
    float* row = ws_.kv_row + t * a.key_dim;
    RmsNorm(row, w.kv_down_norm, config_.norm_epsilon, row, mla.kv_rank);
    ApplyRope(rope, t, row + mla.kv_rank);
    const KvPlace to = PlaceOf(layer, t);
    StoreKeys(to.layout, to.page, 0, to.position, 1, row, a.key_dim);
    for (std::size_t h = 0; h < heads; ++h) {
      float* rotary = ws_.q.Row(t) + h * head_dim + mla.nope_dim;
      ApplyRope(rope, t, rotary);
      std::memcpy(ws_.q_latent + (t * heads + h) * a.key_dim + mla.kv_rank, rotary,
                  mla.rope_dim * sizeof(float));
    }
  });

  // A row a token and head; head h multiplies its own rows with its own matrices.
  const Activations q_plain =
      MakeActivations(ws_.q.values, head_dim, tokens_ * heads, mla.nope_dim, ws_.q_plain.storage);
  QuantizeRows(q_plain, pool_);
  for (std::size_t h = 0; h < heads; ++h) {
    region_.Add(w.k_up[h], q_plain, HeadRows(h), ws_.q_latent + h * a.key_dim, heads * a.key_dim);
  }
  region_.Run(pool_);

  Attend(layer, nullptr, ws_.q_latent, heads * a.key_dim, ws_.latent.values, heads * mla.kv_rank);

  const Activations latent = ws_.latent.Of(tokens_ * heads);
  QuantizeRows(latent, pool_);
  for (std::size_t h = 0; h < heads; ++h) {
    region_.Add(w.v_up[h], latent, HeadRows(h), ws_.attended.values + h * mla.value_dim,
                ws_.attended.cols);
  }
  region_.Run(pool_);
  ProjectAttended(ws_.attended, w.out);
}

}  // namespace troupe
