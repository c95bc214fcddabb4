#include "model/transformer.h"

#include <algorithm>

#include "kernels/elementwise.h"
#include "kernels/gates.h"
#include "kernels/quantize_activations.h"
#include "kernels/rms_norm.h"
#include "model/forecast_rows.h"
#include "model/forward_pass.h"
#include "model/state_replay.h"
#include "quant/dequantize.h"

namespace troupe {

Status Transformer::CheckGroup(const RowGroup& group) const {
  TROUPE_CHECK(group.stream.empty() == (layers_.first == 0) &&
               group.tokens.empty() == (layers_.first != 0));
  TROUPE_CHECK(group.stream.size() % config_.width == 0);
  const KvSequence& cache = *group.cache;
  const std::size_t rows = group.Rows(config_.width);
  if (rows > cache.capacity() - cache.length()) {
    return Error(Code::kResourceExhausted,
                 "{} tokens after {} do not fit into a KV cache of {} positions", rows,
                 cache.length(), cache.capacity());
  }
  for (const std::int32_t token : group.tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= config_.vocabulary) {
      return InvalidArgument("token id {} is not in the vocabulary of {}", token,
                             config_.vocabulary);
    }
  }
  return OkStatus();
}

Status Transformer::CheckBatch(Batch batch, const Workspace& workspace) const {
  std::size_t rows = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(CheckGroup(batch[i]));
    rows += batch[i].Rows(config_.width);
    for (std::size_t j = 0; j < i; ++j) TROUPE_CHECK(batch[j].cache != batch[i].cache);
  }
  TROUPE_CHECK(rows > 0 && rows <= workspace.chunk());
  return OkStatus();
}

void Transformer::Embed(TokenIds tokens, float* stream, Workspace& workspace) const {
  const TensorType type = weights_.embedding.type;
  const std::span<std::byte> row =
      workspace.embedding_row.first(RowBytes(type, config_.width).count());
  for (const std::int32_t token : tokens) {
    UnpackRow(weights_.embedding, static_cast<std::size_t>(token), row);
    DequantizeRow(type, row, std::span(stream, config_.width));
    if (config_.embedding_scale != 1) Scale(config_.embedding_scale, stream, config_.width);
    stream += config_.width;
  }
}

void Transformer::PlaceRows(Batch batch, Workspace& workspace) {
  rows_ = 0;
  for (std::size_t g = 0; g < batch.size(); ++g) {
    const RowGroup& group = batch[g];
    float* const stream = workspace.stream + rows_ * config_.width;
    if (group.stream.empty()) {
      Embed(group.tokens, stream, workspace);
    } else {
      std::ranges::copy(group.stream, stream);
    }
    for (std::size_t i = 0; i < group.Rows(config_.width); ++i, ++rows_) {
      workspace.positions[rows_] = static_cast<std::int32_t>(group.cache->length() + i);
      workspace.group_of_row[rows_] = static_cast<std::uint32_t>(g);
    }
  }
  for (RopeTable& rope : workspace.rope) rope.Fill(std::span(workspace.positions).first(rows_));
}

void Transformer::Show(std::uint32_t layer, StreamPlace place, const Workspace& workspace) const {
  if (observer_ != nullptr) observer_->Saw(layer, place, workspace.stream, rows_);
}

void Transformer::TellRowsDone(std::uint32_t layers) const {
  if (rows_done_ == nullptr) return;
  const double share = double{1} * layers / (layers_.end - layers_.first);
  rows_done_->store(share * static_cast<double>(rows_), std::memory_order_relaxed);
}

PassFacts Transformer::FactsOf(Batch batch, LayerRange layers) const {
  LayerRange sparse = layers;
  while (sparse.size() > 0 && !config_.IsMoeLayer(sparse.first)) ++sparse.first;
  while (sparse.size() > 0 && !config_.IsMoeLayer(sparse.end - 1)) --sparse.end;
  PassFacts facts{.first_layer = sparse.first, .end_layer = sparse.end, .groups = {}};
  facts.groups.reserve(batch.size());
  facts.drafts = batch.front().drafts;
  for (const RowGroup& group : batch) {
    facts.groups.push_back({.sequence = group.sequence,
                            .request = group.request,
                            .phase = group.phase,
                            .exact = group.exact,
                            .position = static_cast<std::uint32_t>(group.cache->length()),
                            .rows = static_cast<std::uint32_t>(group.Rows(config_.width)),
                            .guessed = group.guessed});
    TROUPE_CHECK(group.drafts == batch.front().drafts);
  }
  return facts;
}

PassTools Transformer::Tools() {
  return {.config = config_,
          .experts = experts_,
          .pool = pool_,
          .region = region_,
          .attention = attention_,
          .observer = route_observer_,
          .groups = groups_,
          .gate_seconds = gate_seconds_};
}

bool Transformer::IsUnwanted() const {
  return std::ranges::all_of(asked_, [](const RowGroup& group) {
    return group.unwanted != nullptr && group.unwanted->load(std::memory_order_relaxed);
  });
}

Status Transformer::RunLayers(Batch batch, LayerRange layers, Workspace& workspace) {
  ForwardPass pass(Tools(), batch, workspace, rows_);
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    if (IsUnwanted()) return Error(Code::kCancelled, "nobody wants this pass any more");
    const LayerWeights& w = weights_.layers[layer];
    Show(layer, StreamPlace::kAttentionInput, workspace);
    experts_.Advance();
    if (config_.IsRecurrent(layer) && config_.short_conv_taps > 0) {
      pass.ConvBlock(layer, w.conv);
    } else if (config_.IsRecurrent(layer) && config_.space) {
      pass.StateSpaceBlock(layer, w.space);
    } else if (config_.IsRecurrent(layer)) {
      pass.DeltaBlock(layer, w.delta);
    }
    if (config_.HasAttention(layer) && config_.attention.mla) {
      pass.LatentBlock(layer, w.mla);
    } else if (config_.HasAttention(layer)) {
      pass.AttentionBlock(layer, w.attention);
    }
    if (config_.IsDecoder(layer)) pass.CrossBlock(layer, w.cross);
    Show(layer, StreamPlace::kGateInput, workspace);
    experts_.Advance();
    if (config_.IsMoeLayer(layer)) {
      std::uint32_t next = layer + 1;
      while (next < layers.end && config_.IsMoeLayer(next)) ++next;
      const auto following = std::span(weights_.layers).subspan(layer + 1, next - layer - 1);
      TROUPE_RETURN_IF_ERROR(pass.ExpertBlock(layer, w, following));
      if (!batch.front().drafts) expert_uses_ += rows_ * config_.moe.routing.top_k;
    } else if (config_.HasFeedForward(layer)) {
      pass.DenseBlock(w);
    }
    if (w.output_scale != nullptr) pass.ScaleStream(*w.output_scale);
    TellRowsDone(layer + 1 - layers.first);
  }
  return OkStatus();
}

void Transformer::BeginPass(Batch batch) const {
  std::size_t kept = 0;
  for (const RowGroup& group : batch) {
    const bool checked = config_.HasState() && group.guessed > 0;
    const StateKeeping keeping{.save_after = group.save_after,
                               .inputs = checked ? group.Rows(config_.width) : 0,
                               .first_input = checked ? kept : 0};
    group.cache->BeginPass(keeping);
    kept += keeping.inputs;
  }
}

void Transformer::KeepFirstRows(KvSequence& sequence, std::size_t rows) {
  ReplayFirstRows(config_, weights_, layers_, pool_, rows, sequence);
}

Status Transformer::Forward(Batch batch, Workspace& workspace) {
  TROUPE_RETURN_IF_ERROR(CheckBatch(batch, workspace));
  asked_ = batch;
  if (config_.encoder) return ForwardInHalves(batch, workspace);
  PlaceRows(batch, workspace);
  const PassFacts facts = FactsOf(batch, layers_);
  experts_.OnPassBegins(facts);
  if (route_observer_ != nullptr) route_observer_->PassBegins(facts);
  BeginPass(batch);
  const Status run = RunLayers(batch, layers_, workspace);
  TellRowsDone(0);
  TROUPE_RETURN_IF_ERROR(run);
  for (const RowGroup& group : batch) group.cache->Advance(group.Rows(config_.width));
  if (route_observer_ != nullptr) route_observer_->PassEnded();
  return OkStatus();
}

void Transformer::Logits(Workspace& workspace, std::span<const std::uint32_t> rows, float* logits) {
  TROUPE_CHECK(layers_.end == config_.layers && rows.size() <= workspace.chunk());
  const Activations normed = workspace.normed.Of(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t row = placed_.empty() ? rows[i] : placed_[rows[i]];
    TROUPE_CHECK(row < rows_);
    RmsNorm(workspace.stream + row * config_.width, weights_.output_norm, config_.norm_epsilon,
            workspace.normed.Row(i), config_.width);
    if (normed.groups != nullptr) QuantizeActivations(normed, i, 1);
  }
  experts_.Advance();  // what the next pass's first layers need may be under way
  const std::size_t tokens = weights_.output.rows;  // of a head perhaps fewer than the vocabulary
  region_.Add(weights_.output, normed, {}, logits, tokens);
  region_.Run(pool_);
  experts_.Advance();
  if (config_.logit_cap > 0) {
    SoftCap(config_.logit_cap, logits, rows.size() * tokens);
  }
  if (config_.logit_scale != 1) {
    Scale(config_.logit_scale, logits, rows.size() * tokens);
  }
}

}  // namespace troupe
