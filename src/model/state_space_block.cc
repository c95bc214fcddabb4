// Mamba-2: project to a gate, channels and a step a head, convolve each channel along the tokens,
// run each head's recurrence token by token, gate its answers, normalise those of a group together,
// project back. A head of a sequence is a task: its tokens follow each other, whatever the number
// of threads.
#include <algorithm>

#include "kernels/delta_gates.h"
#include "kernels/gates.h"
#include "kernels/rms_norm.h"
#include "kernels/state_space.h"
#include "model/conv_state.h"
#include "model/forward_pass.h"
#include "model/recurrent_heads.h"

namespace troupe {

void ForwardPass::SetSpaceGates(const StateSpaceWeights& w) {
  const StateSpaceConfig& space = *config_.space;
  const std::size_t heads = space.heads;
  ForRows(tokens_, [&](std::size_t t) {
    const float* const steps = ws_.space_in + (t + 1) * space.InRow() - heads;
    float* const decay = ws_.space_gates + 2 * t * heads;
    std::copy_n(steps, heads, decay);
    StateSpaceGates(w.dt, w.a, decay, decay + heads, heads);
  });
}

void ForwardPass::ConvolveSpace(std::uint32_t layer, const StateSpaceWeights& w) {
  const StateSpaceConfig& space = *config_.space;
  const std::size_t channels = space.Channels(), pieces = ConvPieces(channels);
  pool_.Run(batch_.size() * pieces, [&](std::size_t task, std::size_t) {
    const GroupRows group = RowsOf(task / pieces);
    const ConvPiece piece = ConvPieceOf(channels, task % pieces);
    const SequenceState::Layer state = group.cache->state().At(layer);
    float* const rows = ws_.space_in + group.first * space.InRow() + space.ValueRow();
    if (state.inputs != nullptr) {
      KeepInputs(state, rows + piece.first, space.InRow(), group.count, piece.count, piece.first);
    }
    ConvolveInState({.channels = channels,
                     .taps = space.taps,
                     .weights = w.conv,
                     .bias = w.conv_bias,
                     .rows = rows,
                     .stride = space.InRow(),
                     .tokens = group.count,
                     .silu = true},
                    state, piece.first, piece.count);
  });
}

void ForwardPass::RunSpaceHeads(std::uint32_t layer, const StateSpaceWeights& w) {
  const StateSpaceConfig& space = *config_.space;
  const std::size_t heads = space.heads, dim = space.head_dim, in = space.InRow();
  pool_.Run(batch_.size() * heads, [&](std::size_t task, std::size_t) {
    const GroupRows group = RowsOf(task / heads);
    const std::size_t head = task % heads;
    const SequenceState::Layer state = group.cache->state().At(layer);
    const float* const gates = ws_.space_gates + 2 * group.first * heads;
    if (state.inputs != nullptr && head == 0) {
      KeepInputs(state, gates, 2 * heads, group.count, 2 * heads, space.Channels());
    }
    RecurrentHead call =
        SpaceHeadOf(space, head, ws_.space_in + group.first * in + space.ValueRow(), in, state);
    call.tokens = group.count;
    call.decay = gates + head;
    call.beta = gates + heads + head;
    call.gate_stride = 2 * heads;
    call.out = ws_.space_out.Row(group.first) + head * dim;
    call.out_stride = ws_.space_out.cols;
    RunAndSave(call, state, head * RecurrentHead::StateFloats(space.key_dim, dim),
               [skip = w.skip[head]](const RecurrentHead& part) {
                 RunStateSpace(part, skip, 0, part.tiles());
               });
  });
}

void ForwardPass::StateSpaceBlock(std::uint32_t layer, const StateSpaceWeights& w) {
  const StateSpaceConfig& space = *config_.space;
  NormaliseStream(w.norm);
  region_.Add(w.in, ws_.normed.Of(tokens_), {}, ws_.space_in, space.InRow());
  region_.Run(pool_);
  SetSpaceGates(w);
  ConvolveSpace(layer, w);
  RunSpaceHeads(layer, w);
  const std::size_t values = space.ValueRow(), of_group = values / space.groups;
  ForRows(tokens_, [&](std::size_t t) {
    float* const out = ws_.space_out.Row(t);
    MultiplySilu(ws_.space_in + t * space.InRow(), out, values);
    for (std::size_t at = 0; at < values; at += of_group) {
      RmsNorm(out + at, w.group_norms + at, config_.norm_epsilon, out + at, of_group);
    }
  });
  ProjectAttended(ws_.space_out, w.out);
}

}  // namespace troupe
