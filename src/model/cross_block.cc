// What joins a decoder with its encoder: keys and values of the encoder's rows, stored once, and
// the attention of the decoder's rows to them.
#include "kernels/kv_layout.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::StoreKeysAndValues(std::uint32_t layer) {
  const AttentionConfig& a = config_.AttentionOf(layer);
  const std::size_t k_row = a.KeyRow(), v_row = a.ValueRow();
  ForRows(tokens_, [&](std::size_t t) {
    const KvPlace to = PlaceOf(layer, t);
    for (std::uint32_t h = 0; h < a.kv_heads; ++h) {
      StoreKeys(to.layout, to.page, h, to.position, 1, ws_.k + t * k_row + h * a.key_dim, k_row);
      StoreValues(to.layout, to.page, h, to.position, 1, ws_.v + t * v_row + h * a.value_dim,
                  v_row);
    }
  });
}

void ForwardPass::StoreEncoded(const float* norm, std::span<const LayerWeights> decoder,
                               std::uint32_t first) {
  NormaliseStream(norm);
  const Activations normed = ws_.normed.Of(tokens_);
  for (std::uint32_t i = 0; i < decoder.size(); ++i) {
    const CrossWeights& w = decoder[i].cross;
    region_.Add(w.k, normed, {}, ws_.k, config_.attention.KeyRow());
    region_.Add(w.v, normed, {}, ws_.v, config_.attention.ValueRow());
    region_.Run(pool_);
    StoreKeysAndValues(first + i);
  }
}

void ForwardPass::CrossBlock(std::uint32_t layer, const CrossWeights& w) {
  const AttentionConfig& a = config_.attention;
  const Rows q = ws_.q.Narrowed(std::size_t{a.heads} * a.key_dim);
  const Rows attended = ws_.attended.Narrowed(std::size_t{a.heads} * a.value_dim);
  NormaliseStream(w.norm);
  region_.Add(w.q, ws_.normed.Of(tokens_), {}, q.values, q.cols);
  region_.Run(pool_);
  std::size_t first = 0;
  for (const RowGroup& group : batch_) {
    const std::size_t rows = group.Rows(config_.width);
    attention_.Add({.layout = group.cache->LayoutOf(layer),
                    .kv = group.cache->Layer(layer),
                    .heads = a.heads,
                    .scale = a.scale,
                    .start = group.cache->length(),
                    .tokens = rows,
                    .keys = group.cache->encoded(),
                    .q = q.Row(first),
                    .q_stride = q.cols,
                    .out = attended.Row(first),
                    .out_stride = attended.cols});
    first += rows;
  }
  attention_.Run(pool_, ws_);
  ProjectAttended(attended, w.out);
}

}  // namespace troupe
