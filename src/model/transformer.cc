#include "model/transformer.h"

#include <numeric>

#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/forward_pass.h"
#include "quant/dequantize.h"

namespace troupe {

Status Transformer::CheckCall(const RowGroup& group, const Workspace& workspace) const {
  const TokenIds tokens = group.tokens;
  const KvCache& cache = *group.cache;
  TROUPE_CHECK(!tokens.empty() && tokens.size() <= workspace.chunk());
  if (tokens.size() > cache.capacity() - cache.length()) {
    return Error(Code::kResourceExhausted,
                 "{} tokens after {} do not fit into a context of {} tokens", tokens.size(),
                 cache.length(), cache.capacity());
  }
  for (const std::int32_t token : tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= config_.vocabulary) {
      return InvalidArgument("token id {} is not in the vocabulary of {}", token,
                             config_.vocabulary);
    }
  }
  return OkStatus();
}

void Transformer::Embed(TokenIds tokens, Workspace& workspace) const {
  const TensorType type = weights_.embedding.type;
  const std::span<std::byte> row =
      workspace.embedding_row.first(RowBytes(type, config_.width).count());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    UnpackRow(weights_.embedding, static_cast<std::size_t>(tokens[t]), row);
    DequantizeRow(type, row, std::span(workspace.stream + t * config_.width, config_.width));
  }
}

void Transformer::Show(std::uint32_t layer, StreamPlace place, const Workspace& workspace,
                       std::size_t tokens) const {
  if (observer_ != nullptr) observer_->Saw(layer, place, workspace.stream, tokens);
}

Status Transformer::Forward(const RowGroup& group, Workspace& workspace) {
  TROUPE_RETURN_IF_ERROR(CheckCall(group, workspace));
  const TokenIds tokens = group.tokens;
  KvCache& cache = *group.cache;
  const std::span<std::int32_t> positions = std::span(workspace.positions).first(tokens.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(cache.length()));
  workspace.rope.front().Fill(positions);
  Embed(tokens, workspace);

  const PassFacts facts{.first_layer = config_.moe.leading_dense,
                        .groups = {{.sequence = group.sequence,
                                    .request = group.request,
                                    .phase = group.phase,
                                    .exact = group.exact,
                                    .position = static_cast<std::uint32_t>(cache.length()),
                                    .rows = static_cast<std::uint32_t>(tokens.size())}}};
  experts_.OnPassBegins(facts);
  if (route_observer_ != nullptr) route_observer_->PassBegins(facts);
  ForwardPass pass(config_, experts_, pool_, region_, cache, workspace, tokens.size(),
                   route_observer_);
  for (std::uint32_t layer = 0; layer < config_.layers; ++layer) {
    const LayerWeights& w = weights_.layers[layer];
    Show(layer, StreamPlace::kAttentionInput, workspace, tokens.size());
    experts_.Advance();
    if (config_.attention.mla) {
      pass.LatentBlock(layer, w.mla);
    } else {
      pass.AttentionBlock(layer, w.attention);
    }
    Show(layer, StreamPlace::kGateInput, workspace, tokens.size());
    experts_.Advance();
    if (config_.IsMoeLayer(layer)) {
      std::uint32_t next = layer + 1;
      while (next < config_.layers && config_.IsMoeLayer(next)) ++next;
      const auto following = std::span(weights_.layers).subspan(layer + 1, next - layer - 1);
      TROUPE_RETURN_IF_ERROR(pass.ExpertBlock(layer, w, following));
      expert_uses_ += tokens.size() * config_.moe.routing.top_k;
    } else {
      pass.DenseBlock(w.ffn_norm, w.dense);
    }
  }
  cache.Advance(tokens.size());
  if (route_observer_ != nullptr) route_observer_->PassEnded();
  return OkStatus();
}

void Transformer::Logits(Workspace& workspace, std::size_t first, std::size_t count,
                         float* logits) {
  TROUPE_CHECK(first + count <= workspace.chunk());
  const Activations normed = workspace.normed.Of(count);
  for (std::size_t row = 0; row < count; ++row) {
    RmsNorm(workspace.stream + (first + row) * config_.width, weights_.output_norm,
            config_.norm_epsilon, workspace.normed.Row(row), config_.width);
    if (normed.groups != nullptr) QuantizeActivations(normed, row, 1);
  }
  region_.Add(weights_.output, normed, {}, logits, config_.vocabulary);
  region_.Run(pool_);
}

}  // namespace troupe
