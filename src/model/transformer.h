// The forward pass of a whole model, or of some of its layers: token ids or rows of the residual
// stream in, the stream of the last layer and logits out. Every row gets the same bytes for any
// number of threads, any way of cutting prompts into chunks and any other rows in its pass.
// Threads: one pass at a time; the pool is used by it alone while it runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "model/attention_region.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/expert_source.h"
#include "model/group_router.h"
#include "model/layer_range.h"
#include "model/matmul_region.h"
#include "model/route_observer.h"
#include "model/stream_observer.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace troupe {

struct PassTools;

class Transformer {
 public:
  // All four references must outlive it. The weights are those of `layers` at least.
  Transformer(const ModelConfig& config, const ModelWeights& weights, ExpertSource& experts,
              ThreadPool& pool, LayerRange layers)
      : config_(config), weights_(weights), experts_(experts), pool_(pool), layers_(layers) {}
  Transformer(const ModelConfig& config, const ModelWeights& weights, ExpertSource& experts,
              ThreadPool& pool)
      : Transformer(config, weights, experts, pool, {0, config.layers}) {}

  // Runs the groups' rows, 1 to workspace.chunk() in all and each sequence in one group at most, at
  // the positions from their caches' length() on, and stores their keys and values. Fails with
  // kResourceExhausted if a sequence has not reserved the room, kInvalidArgument if a token id is
  // out of range, or as its experts fail; no sequence is then longer than before.
  Status Forward(Batch batch, Workspace& workspace);

  // Of an encoder-decoder a group whose sequence begins has all of its prompt: tokens for the
  // encoder, and from the first one that is the decoder's start on those for the decoder.

  // Of the last Forward's rows of a sequence whose layers have a state, guesses among them: the
  // first `rows` stay, and the others are forgotten. Fewer than there were, and at least one.
  void KeepFirstRows(KvSequence& sequence, std::size_t rows);

  // The stream after the last Forward, a row a row of its batch, group after group: what the part
  // of a model that has the following layers takes. Good until the next Forward. Of an
  // encoder-decoder the decoder's rows alone.
  std::span<const float> Stream(const Workspace& workspace) const {
    return {workspace.stream, rows_ * config_.width};
  }

  // Logits of these rows of the last Forward, at most workspace.chunk() at a time, as many floats
  // a row as the output has rows: the vocabulary, or of a head perhaps fewer tokens. Overwrites
  // workspace.normed; may be called for any rows, in parts. Of a transformer that has the last
  // layer. An encoder's rows have none.
  void Logits(Workspace& workspace, std::span<const std::uint32_t> rows, float* logits);

  const ModelConfig& config() const { return config_; }
  LayerRange layers() const { return layers_; }
  // (token, layer, expert) triples that routers chose so far, however they were answered.
  std::uint64_t expert_uses() const { return expert_uses_; }

  // In which experts were chosen: the routers' products, those that forecasts ask of later ones
  // beside them (and what a look-ahead computes before those), and the choice.
  double gate_seconds() const { return gate_seconds_; }

  // May be null, and must outlive the passes.
  void set_groups(GroupRouter* groups) { groups_ = groups; }
  // Both may be null, and must outlive the passes.
  void set_observer(StreamObserver* observer) { observer_ = observer; }
  void set_route_observer(RouteObserver* observer) { route_observer_ = observer; }
  RouteObserver* route_observer() const { return route_observer_; }
  // Told to how many rows the pass under way comes, where a row counts as the share of the layers
  // that it has gone through; 0 between passes. May be null, and must outlive the passes.
  void set_rows_done(std::atomic<double>* rows) { rows_done_ = rows; }

 private:
  Status CheckBatch(Batch batch, const Workspace& workspace) const;
  Status CheckGroup(const RowGroup& group) const;
  PassFacts FactsOf(Batch batch, LayerRange layers) const;
  PassTools Tools();
  void BeginPass(Batch batch) const;
  void PlaceRows(Batch batch, Workspace& workspace);
  void Embed(TokenIds tokens, float* stream, Workspace& workspace) const;
  void TellRowsDone(std::uint32_t layers) const;
  void Show(std::uint32_t layer, StreamPlace place, const Workspace& workspace) const;
  bool IsUnwanted() const;
  Status RunLayers(Batch batch, LayerRange layers, Workspace& workspace);

  // encoder_decoder.cc
  Result<std::size_t> EncoderRows(const RowGroup& group, const Workspace& workspace) const;
  void FillPositionBiases(Workspace& workspace) const;
  Status RunHalf(Batch batch, LayerRange layers, Workspace& workspace);
  Status Encode(Batch prompts, Workspace& workspace);
  Status Decode(Batch answers, Workspace& workspace);
  Status ForwardInHalves(Batch batch, Workspace& workspace);

  const ModelConfig& config_;
  const ModelWeights& weights_;
  ExpertSource& experts_;
  ThreadPool& pool_;
  LayerRange layers_;
  MatMulRegion region_;
  AttentionRegion attention_;
  std::size_t rows_ = 0;  // of the last pass
  Batch asked_;           // of the pass under way: all of it, even while one half of it runs
  // Of an encoder-decoder: where each row of the last batch is in the workspace.
  static constexpr std::uint32_t kNotPlaced = ~0u;
  std::vector<std::uint32_t> placed_;
  std::uint64_t expert_uses_ = 0;
  double gate_seconds_ = 0;
  GroupRouter* groups_ = nullptr;
  StreamObserver* observer_ = nullptr;
  RouteObserver* route_observer_ = nullptr;
  std::atomic<double>* rows_done_ = nullptr;
};

}  // namespace troupe
