// A gated delta net: project, convolve each channel along the tokens, make queries and keys of unit
// length, run each head's recurrence token by token, normalise its answers and gate them, project
// back. A head of a sequence is a task: its tokens follow each other, whatever the number of
// threads.
#include <algorithm>
#include <cmath>

#include "kernels/delta_gates.h"
#include "kernels/delta_net.h"
#include "kernels/gates.h"
#include "kernels/l2_norm.h"
#include "kernels/rms_norm.h"
#include "model/conv_state.h"
#include "model/forward_pass.h"
#include "model/recurrent_heads.h"

namespace troupe {

void ForwardPass::DeltaInputs(const DeltaNetWeights& w) {
  const DeltaNetConfig& delta = *config_.delta;
  const Activations normed = ws_.normed.Of(tokens_);
  const std::size_t gates = 2 * delta.value_heads;
  region_.Add(w.qkv, normed, {}, ws_.mixed, delta.Channels());
  region_.Add(w.z, normed, {}, ws_.delta_z, delta.ValueRow());
  if (delta.fused_gates) {
    region_.Add(w.gates, normed, {}, ws_.fused_gates, gates);
  } else {
    region_.Add(w.alpha, normed, {}, ws_.delta_gates, gates);
    region_.Add(w.beta, normed, {}, ws_.delta_gates + delta.value_heads, gates);
  }
  region_.Run(pool_);
}

void ForwardPass::SetDeltaGates(const DeltaNetWeights& w) {
  const DeltaNetConfig& delta = *config_.delta;
  const std::size_t heads = delta.value_heads, of_key = heads / delta.key_heads;
  ForRows(tokens_, [&](std::size_t t) {
    float* const alpha = ws_.delta_gates + 2 * t * heads;
    float* const beta = alpha + heads;
    if (delta.fused_gates) {  // key head by key head: beta of its value heads, then alpha
      const float* fused = ws_.fused_gates + 2 * t * heads;
      for (std::size_t first = 0; first < heads; first += of_key, fused += 2 * of_key) {
        std::copy_n(fused, of_key, beta + first);
        std::copy_n(fused + of_key, of_key, alpha + first);
      }
    }
    DeltaGates(w.dt, w.a, alpha, beta, heads);
  });
}

// Tasks of as many channels as a head has: all of queries, keys and values.
void ForwardPass::ConvolveHeads(std::uint32_t layer, const DeltaNetWeights& w) {
  const DeltaNetConfig& delta = *config_.delta;
  const std::size_t dim = delta.head_dim, channels = delta.Channels(), pieces = channels / dim;
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(dim));
  pool_.Run(batch_.size() * pieces, [&](std::size_t task, std::size_t) {
    const GroupRows group = RowsOf(task / pieces);
    const std::size_t piece = task % pieces;
    const SequenceState::Layer state = group.cache->state().At(layer);
    float* const rows = ws_.mixed + group.first * channels;
    if (state.inputs != nullptr)
      KeepInputs(state, rows + piece * dim, channels, group.count, dim, piece * dim);
    const ShortConv conv{.channels = channels,
                         .taps = delta.taps,
                         .weights = w.conv,
                         .rows = rows,
                         .stride = channels,
                         .tokens = group.count,
                         .silu = true};
    ConvolveInState(conv, state, piece * dim, dim);
    if (piece >= 2 * delta.key_heads) return;  // values keep their length
    const float scale = piece < delta.key_heads ? q_scale : 1.0f;
    for (std::size_t t = 0; t < group.count; ++t) {
      float* const head = rows + t * channels + piece * dim;
      L2Norm(head, config_.norm_epsilon, scale, head, dim);
    }
  });
}

void ForwardPass::RunDeltaHeads(std::uint32_t layer, const DeltaNetWeights& w) {
  const DeltaNetConfig& delta = *config_.delta;
  const std::size_t dim = delta.head_dim, channels = delta.Channels(), heads = delta.value_heads;
  pool_.Run(batch_.size() * heads, [&](std::size_t task, std::size_t) {
    const GroupRows group = RowsOf(task / heads);
    const std::size_t head = task % heads;
    const SequenceState::Layer state = group.cache->state().At(layer);
    const float* const gates = ws_.delta_gates + 2 * group.first * heads;
    if (state.inputs != nullptr && head == 0) {
      KeepInputs(state, gates, 2 * heads, group.count, 2 * heads, channels);
    }
    float* const out = ws_.delta_out.Row(group.first) + head * dim;
    DeltaNetHead call =
        DeltaHeadOf(delta, head, ws_.mixed + group.first * channels, channels, state);
    call.tokens = group.count;
    call.decay = gates + head;
    call.beta = gates + heads + head;
    call.gate_stride = 2 * heads;
    call.out = out;
    call.out_stride = ws_.delta_out.cols;
    RunAndSave(call, state, head * RecurrentHead::StateFloats(dim, dim),
               [](const DeltaNetHead& part) { RunDeltaNet(part, 0, part.tiles()); });
    for (std::size_t t = 0; t < group.count; ++t) {
      float* const row = out + t * ws_.delta_out.cols;
      RmsNorm(row, w.head_norm, config_.norm_epsilon, row, dim);
      MultiplySilu(ws_.delta_z + (group.first + t) * delta.ValueRow() + head * dim, row, dim);
    }
  });
}

void ForwardPass::DeltaBlock(std::uint32_t layer, const DeltaNetWeights& w) {
  NormaliseStream(w.norm);
  DeltaInputs(w);
  SetDeltaGates(w);
  ConvolveHeads(layer, w);
  RunDeltaHeads(layer, w);
  ProjectAttended(ws_.delta_out, w.out);
}

}  // namespace troupe
