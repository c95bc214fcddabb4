// A layer that mixes tokens by a short convolution (LFM2): project to two gates and a row, multiply
// the row with one gate, convolve each channel along the tokens, multiply with the other gate,
// project back. Some channels of a sequence are a task.
#include <algorithm>

#include "kernels/elementwise.h"
#include "model/conv_state.h"
#include "model/forward_pass.h"

namespace troupe {

void ForwardPass::ConvBlock(std::uint32_t layer, const ShortConvWeights& w) {
  const std::size_t width = config_.width, stride = 3 * width;
  NormaliseStream(w.norm);
  region_.Add(w.in, ws_.normed.Of(tokens_), {}, ws_.conv_in, stride);
  region_.Run(pool_);

  const std::size_t pieces = ConvPieces(width);
  pool_.Run(batch_.size() * pieces, [&](std::size_t task, std::size_t) {
    const GroupRows group = RowsOf(task / pieces);
    const auto [first, count] = ConvPieceOf(width, task % pieces);
    // A row: the gate before, the gate behind, what is convolved.
    float* const before = ws_.conv_in + group.first * stride;
    float* const behind = before + width;
    float* const mixed = behind + width;
    for (std::size_t t = 0; t < group.count; ++t) {
      Multiply(before + t * stride + first, mixed + t * stride + first, count);
    }
    const SequenceState::Layer state = group.cache->state().At(layer);
    if (state.inputs != nullptr) {
      KeepInputs(state, mixed + first, stride, group.count, count, first);
    }
    ConvolveInState({.channels = width,
                     .taps = config_.short_conv_taps,
                     .weights = w.conv,
                     .rows = mixed,
                     .stride = stride,
                     .tokens = group.count},
                    state, first, count);
    for (std::size_t t = 0; t < group.count; ++t) {
      float* const out = ws_.conv_out.Row(group.first + t) + first;
      std::copy_n(mixed + t * stride + first, count, out);
      Multiply(behind + t * stride + first, out, count);
    }
  });
  ProjectAttended(ws_.conv_out, w.out);
}

}  // namespace troupe
