#include "model/weights.h"

#include <algorithm>

namespace troupe {
namespace {

Bytes BytesOf(const PanelMatrix& m) {
  return m.data == nullptr ? Bytes() : Bytes(PanelBytes(m.type, m.rows, m.cols));
}

Bytes BytesOf(const Mlp& mlp) { return BytesOf(mlp.gate) + BytesOf(mlp.up) + BytesOf(mlp.down); }

}  // namespace

Bytes BytesTouchedPerToken(const ModelWeights& weights, std::uint32_t top_k) {
  Bytes sum = BytesOf(weights.output);
  for (const LayerWeights& layer : weights.layers) {
    const AttentionWeights& a = layer.attention;
    for (const Linear* linear : {&a.q, &a.k, &a.v, &a.out, &layer.mla.q, &layer.mla.out}) {
      sum += BytesOf(linear->weight);
    }
    sum += BytesOf(layer.mla.q_down) + BytesOf(layer.mla.kv_down);
    for (const PanelMatrix& m : layer.mla.k_up) sum += BytesOf(m);
    for (const PanelMatrix& m : layer.mla.v_up) sum += BytesOf(m);
    sum += BytesOf(layer.dense) + BytesOf(layer.moe.router) + BytesOf(layer.moe.shared) +
           BytesOf(layer.moe.shared_gate);
    const std::size_t chosen = std::min<std::size_t>(top_k, layer.moe.experts.size());
    if (chosen > 0) sum += chosen * BytesOf(layer.moe.experts.front());
  }
  return sum;
}

}  // namespace troupe
