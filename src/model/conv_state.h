// A short convolution of one sequence's rows of a pass together with the state that it leaves, and
// the rows' inputs where they are kept: what delta nets, Mamba-2 and layers that are convolutions
// have in common.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/short_conv.h"
#include "model/sequence_state.h"

namespace troupe {

// A convolution's channels in pieces that are tasks.
struct ConvPiece {
  std::size_t first, count;
};
inline constexpr std::size_t kChannelsOfAPiece = 256;
inline std::size_t ConvPieces(std::size_t channels) {
  return (channels + kChannelsOfAPiece - 1) / kChannelsOfAPiece;
}
inline ConvPiece ConvPieceOf(std::size_t channels, std::size_t piece) {
  const std::size_t first = piece * kChannelsOfAPiece;
  return {first, std::min(kChannelsOfAPiece, channels - first)};
}

// The first `count` floats of each row, to the place `at` of the row's inputs.
inline void KeepInputs(const SequenceState::Layer& state, const float* rows, std::size_t stride,
                       std::size_t tokens, std::size_t count, std::size_t at) {
  for (std::size_t t = 0; t < tokens; ++t) {
    std::copy_n(rows + t * stride, count, state.inputs + t * state.input_stride + at);
  }
}

// `conv` without its tail, in channels from `first` on, `count` of them.
inline void ConvolveInState(ShortConv conv, const SequenceState::Layer& state, std::size_t first,
                            std::size_t count) {
  conv.tail = state.tail_before;
  CopyConvTail(conv, state.tail_after, first, count);
  if (state.save_after > 0) {
    ShortConv until = conv;
    until.tokens = state.save_after;
    CopyConvTail(until, state.tail_saved, first, count);
  }
  RunShortConv(conv, first, count);
}

}  // namespace troupe
