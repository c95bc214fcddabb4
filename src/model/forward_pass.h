// One pass of a batch of rows through the layers: what the blocks share. A block reads
// workspace.stream, adds its answer to it, and leaves nothing else behind but keys, values and
// states. Only attention and what takes its place look at which sequence a row belongs to. One
// block a file: attention_block.cc, latent_block.cc, delta_block.cc, state_space_block.cc,
// conv_block.cc, cross_block.cc, dense_block.cc, expert_block.cc.
#pragma once

#include <algorithm>
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
#include "model/for_rows.h"
#include "model/group_router.h"
#include "model/matmul_region.h"
#include "model/route_observer.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace troupe {

// What a pass works with, whatever its batch.
struct PassTools {
  const ModelConfig& config;
  ExpertSource& experts;
  ThreadPool& pool;
  MatMulRegion& region;
  AttentionRegion& attention;
  RouteObserver* observer;  // may be null
  GroupRouter* groups;      // chooses experts of rows that need not be exact; null: nobody does
  double& gate_seconds;     // sum of what routing takes
};

class ForwardPass {
 public:
  // The batch's rows, `rows` in all, are in the workspace: stream, positions, groups and rotations.
  ForwardPass(const PassTools& tools, Batch batch, Workspace& workspace, std::size_t rows);

  void AttentionBlock(std::uint32_t layer, const AttentionWeights& w);
  void LatentBlock(std::uint32_t layer, const MlaWeights& w);
  void DeltaBlock(std::uint32_t layer, const DeltaNetWeights& w);
  void StateSpaceBlock(std::uint32_t layer, const StateSpaceWeights& w);
  void ConvBlock(std::uint32_t layer, const ShortConvWeights& w);
  void DenseBlock(const LayerWeights& w);
  // Of a decoder's layer: attention to what its sequence's encoder has left.
  void CrossBlock(std::uint32_t layer, const CrossWeights& w);
  // Of an encoder's rows behind its last layer, each of a sequence that begins: the norm, and keys
  // and values of the cross-attentions of all layers from `first` on.
  void StoreEncoded(const float* norm, std::span<const LayerWeights> decoder, std::uint32_t first);
  // Fails if an expert cannot be had, or if the router's arithmetic has broken down (NaN): nothing
  // sensible can follow.
  // `following` are the next layers, as far as they have experts without a gap.
  Status ExpertBlock(std::uint32_t layer, const LayerWeights& w,
                     std::span<const LayerWeights> following);
  // What a layer does with the stream when its blocks have added to it.
  void ScaleStream(float factor);

 private:
  template <typename F>
  void ForRows(std::size_t rows, F&& work) {
    troupe::ForRows(pool_, rows, work);
  }

  // Rows of the norm of the stream, with their 8-bit form: ws_.normed where nothing else is said.
  void NormaliseStream(const float* weight) { NormaliseStream(weight, ws_.normed); }
  void NormaliseStream(const float* weight, const Rows& to);
  std::span<const std::uint32_t> HeadRows(std::size_t head) const {
    return ws_.head_rows.subspan(head * ws_.chunk(), tokens_);
  }
  // Where the keys and values of a row of the pass go: a page and the place in it.
  struct KvPlace {
    const KvLayout& layout;
    std::byte* page;
    std::size_t position;
  };
  KvPlace PlaceOf(std::uint32_t layer, std::size_t row) const {
    const auto position = static_cast<std::size_t>(ws_.positions[row]);
    const KvSequence& cache = *batch_[ws_.group_of_row[row]].cache;
    const KvLayout& layout = cache.LayoutOf(layer);
    return {.layout = layout,
            .page = cache.PageOf(layer, position),
            .position = position % layout.capacity};
  }
  // `sinks`: as the layer's weights have them.
  void Attend(std::uint32_t layer, const float* sinks, const float* q, std::size_t q_row,
              float* out, std::size_t out_row);
  // stream += w.out of what was attended.
  void ProjectAttended(const Rows& rows, const Linear& out, const float* answer_norm = nullptr);
  // Adds what a block answers, a row a token, to the stream; through a norm unless that is null.
  void AddToStream(float* answers, const float* norm);
  const RopeTable& RopeOf(std::uint32_t layer) const {
    return config_.HasWindow(layer) ? ws_.rope.back() : ws_.rope.front();
  }

  // Keys and values of all rows, as ws_.k and ws_.v have them.
  void StoreKeysAndValues(std::uint32_t layer);

  // The rows of a group of the batch.
  struct GroupRows {
    const KvSequence* cache;
    std::size_t first, count;
  };
  GroupRows RowsOf(std::size_t group) const;

  // Of a delta net: all it multiplies the normed stream with; the gates; and of each group's heads
  // the convolution, and then the recurrence.
  void DeltaInputs(const DeltaNetWeights& w);
  void SetDeltaGates(const DeltaNetWeights& w);
  void ConvolveHeads(std::uint32_t layer, const DeltaNetWeights& w);
  void RunDeltaHeads(std::uint32_t layer, const DeltaNetWeights& w);

  // Of Mamba-2 behind the product: how much each head forgets and learns; the convolution; the
  // recurrence.
  void SetSpaceGates(const StateSpaceWeights& w);
  void ConvolveSpace(std::uint32_t layer, const StateSpaceWeights& w);
  void RunSpaceHeads(std::uint32_t layer, const StateSpaceWeights& w);

  bool IsGrouped(std::size_t row) const { return groups_ != nullptr && groups_->Routes(row); }
  // The first product of the layer's gate: the router's, or for grouped rows the groups'.
  void AddRouter(std::uint32_t layer, const MoeWeights& w, const Activations& input);
  // What the gate says of the rows that forecasts are made of.
  void KeepExactLogits();
  void KeepGroupedLogits(std::uint32_t layer);
  // Asks the layer's gate for all tokens and those of `forecasts` layers for some; with `tells` it
  // keeps what the layer's own says of the same ones.
  Status Route(std::uint32_t layer, const MoeWeights& w, std::span<const LayerWeights> forecasts,
               bool tells);
  std::size_t ForecastRows() const { return forecast_rows_.size(); }
  void AskEarly(const LayerWeights& next, std::size_t place);
  GateScores GateSaid(const MoeWeights& w);
  GateScores Forecast(const MoeWeights& next, std::size_t place);
  void OrderByExpert();
  // An expert's rows of ws_.expert_hidden and ws_.expert_out.
  struct Assignments {
    std::size_t first, count;
  };
  Assignments AssignmentsOf(std::uint32_t expert) const;
  std::span<const ExpertDemand> Demands() const;
  void TellForecasts(std::uint32_t layer, const MoeWeights& w,
                     std::span<const LayerWeights> following, std::size_t forecasts, bool tells);
  // `next`: a layer whose gate is asked once the first answers are there, or null.
  Status RunChosen(std::uint32_t layer, const LayerWeights& w,
                   std::span<const ExpertDemand> demands, const LayerWeights* next);
  // The first halves of experts whose last bytes are still on their way.
  void BeginExperts();
  bool HasBegun(std::uint32_t expert) const {
    return std::ranges::find(begun_, expert) != begun_.end();
  }
  void RunExperts(std::span<const ReadyExpert> experts, const Mlp* shared);
  // Of an encoder's layer: a sequence's rows beyond what an expert takes have no answer of it.
  void DropBeyondCapacity(std::uint32_t layer);
  void RouterInputs(const LayerWeights& w);
  // Of the experts that `there` marks, or of all if it is empty.
  void MixAnswers(std::size_t token, const ExpertExtras& extras,
                  std::span<const std::uint8_t> there, float* out) const;
  // Theirs and the shared expert's, where experts do not stand beside a dense block.
  void AddAnswers(std::size_t token, const MoeWeights& w, std::span<const std::uint8_t> there,
                  float* stream) const;
  // look_ahead.cc
  void ForecastWithAnswers(std::uint32_t layer, const LayerWeights& w, const LayerWeights& next,
                           std::span<const ReadyExpert> ready);
  // The rows of a forecast, which are all of the pass, through a layer's attention.
  void AttendAhead(std::uint32_t layer, const LayerWeights& w);
  void AddAnswersBesideDense(std::size_t row, const LayerWeights& w,
                             std::span<const std::uint8_t> there, float* stream);
  void QuantizeHidden(const Activations& hidden, std::span<const ReadyExpert> experts);
  void CopyAnswers(std::span<const ReadyExpert> experts);
  void Combine(const LayerWeights& w);
  void CombineBesideDense(const LayerWeights& w);

  const ModelConfig& config_;
  ExpertSource& experts_;
  ThreadPool& pool_;
  MatMulRegion& region_;
  AttentionRegion& attention_;
  RouteObserver* observer_;  // may be null
  GroupRouter* groups_;      // null: every row of the pass is routed exactly
  double& gate_seconds_;
  Batch batch_;
  Workspace& ws_;
  std::size_t tokens_;                            // rows of all groups
  std::span<const std::uint32_t> forecast_rows_;  // that forecasts are made of
  std::vector<std::uint32_t> begun_;  // experts of the layer: their hidden rows are there
};

}  // namespace troupe
