#include "model/state_replay.h"

#include <vector>

#include "base/check.h"
#include "kernels/delta_net.h"
#include "kernels/l2_norm.h"
#include "kernels/short_conv.h"
#include "kernels/state_space.h"
#include "model/conv_state.h"
#include "model/recurrent_heads.h"

namespace troupe {
namespace {

struct Replay {
  const ModelConfig& config;
  const ModelWeights& weights;
  const SequenceState& state;
  std::vector<std::uint32_t> layers;  // with a state
  std::size_t rows;
};

// The tail alone: outputs of a convolution are nobody's past.
void ReplayConvolutions(const Replay& replay, ThreadPool& pool) {
  pool.Run(replay.layers.size(), [&](std::size_t task, std::size_t) {
    const SequenceState::Layer state = replay.state.At(replay.layers[task]);
    const std::size_t width = replay.config.width;
    CopyConvTail({.channels = width,
                  .taps = replay.config.short_conv_taps,
                  .tail = state.tail_before,
                  .rows = state.inputs,
                  .stride = state.input_stride,
                  .tokens = replay.rows},
                 state.tail_after, 0, width);
  });
}

// In place, as the pass does it; queries have no part in the state.
void ReplayHeadInputs(const Replay& replay, ThreadPool& pool) {
  const DeltaNetConfig& delta = *replay.config.delta;
  const std::size_t dim = delta.head_dim, pieces = delta.Channels() / dim;
  pool.Run(replay.layers.size() * pieces, [&](std::size_t task, std::size_t) {
    const std::uint32_t layer = replay.layers[task / pieces];
    const std::size_t piece = task % pieces;
    const SequenceState::Layer state = replay.state.At(layer);
    const ShortConv conv{.channels = delta.Channels(),
                         .taps = delta.taps,
                         .weights = replay.weights.layers[layer].delta.conv,
                         .tail = state.tail_before,
                         .rows = state.inputs,
                         .stride = state.input_stride,
                         .tokens = replay.rows,
                         .silu = true};
    CopyConvTail(conv, state.tail_after, piece * dim, dim);
    if (piece < delta.key_heads) return;
    RunShortConv(conv, piece * dim, dim);
    if (piece >= 2 * delta.key_heads) return;
    for (std::size_t t = 0; t < replay.rows; ++t) {
      float* const key = state.inputs + t * state.input_stride + piece * dim;
      L2Norm(key, replay.config.norm_epsilon, 1, key, dim);
    }
  });
}

// `head_of` gives the call of a head of a layer's state, `run` makes it.
template <typename HeadOf>
void ReplayEachHead(const Replay& replay, std::size_t heads, std::size_t channels, HeadOf head_of,
                    void (*run)(const RecurrentHead&), ThreadPool& pool) {
  pool.Run(replay.layers.size() * heads, [&](std::size_t task, std::size_t) {
    const SequenceState::Layer state = replay.state.At(replay.layers[task / heads]);
    const std::size_t head = task % heads;
    RecurrentHead call = head_of(head, state);
    const float* const gates = state.inputs + channels;
    call.tokens = replay.rows;
    call.decay = gates + head;
    call.beta = gates + heads + head;
    call.gate_stride = state.input_stride;
    float unread[kMostHeadDim];  // what the head says, all rows in one place
    call.out = unread;
    call.out_stride = 0;
    run(call);
  });
}

void ReplayHeads(const Replay& replay, ThreadPool& pool) {
  const DeltaNetConfig& delta = *replay.config.delta;
  ReplayEachHead(
      replay, delta.value_heads, delta.Channels(),
      [&delta](std::size_t head, const SequenceState::Layer& state) {
        return DeltaHeadOf(delta, head, state.inputs, state.input_stride, state);
      },
      [](const RecurrentHead& call) { RunDeltaNet(call, 0, call.tiles()); }, pool);
}

// The same of Mamba-2. Queries, the last of the channels, are convolved without need where a piece
// has keys, too.
void ReplaySpaceInputs(const Replay& replay, ThreadPool& pool) {
  const StateSpaceConfig& space = *replay.config.space;
  const std::size_t channels = space.Channels(), pieces = ConvPieces(channels);
  pool.Run(replay.layers.size() * pieces, [&](std::size_t task, std::size_t) {
    const std::uint32_t layer = replay.layers[task / pieces];
    const ConvPiece piece = ConvPieceOf(channels, task % pieces);
    const SequenceState::Layer state = replay.state.At(layer);
    const StateSpaceWeights& w = replay.weights.layers[layer].space;
    const ShortConv conv{.channels = channels,
                         .taps = space.taps,
                         .weights = w.conv,
                         .bias = w.conv_bias,
                         .tail = state.tail_before,
                         .rows = state.inputs,
                         .stride = state.input_stride,
                         .tokens = replay.rows,
                         .silu = true};
    CopyConvTail(conv, state.tail_after, piece.first, piece.count);
    if (piece.first < channels - space.KeyRow()) RunShortConv(conv, piece.first, piece.count);
  });
}

void ReplaySpaceHeads(const Replay& replay, ThreadPool& pool) {
  const StateSpaceConfig& space = *replay.config.space;
  ReplayEachHead(
      replay, space.heads, space.Channels(),
      [&space](std::size_t head, const SequenceState::Layer& state) {
        return SpaceHeadOf(space, head, state.inputs, state.input_stride, state);
      },
      [](const RecurrentHead& call) { RunStateSpace(call, 0, 0, call.tiles()); }, pool);
}

}  // namespace

void ReplayFirstRows(const ModelConfig& config, const ModelWeights& weights, LayerRange layers,
                     ThreadPool& pool, std::size_t rows, KvSequence& sequence) {
  TROUPE_CHECK(rows > 0);
  sequence.BeginReplay();
  Replay replay{
      .config = config, .weights = weights, .state = sequence.state(), .layers = {}, .rows = rows};
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    if (config.IsRecurrent(layer)) replay.layers.push_back(layer);
  }
  if (config.delta) {
    ReplayHeadInputs(replay, pool);
    ReplayHeads(replay, pool);
  } else if (config.space) {
    ReplaySpaceInputs(replay, pool);
    ReplaySpaceHeads(replay, pool);
  } else {
    ReplayConvolutions(replay, pool);
  }
  sequence.EndReplay(rows);
}

}  // namespace troupe
