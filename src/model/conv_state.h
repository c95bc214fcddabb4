// A short convolution of one sequence's rows of a pass together with the state that it leaves, and
// the rows' inputs where they are kept: what delta nets and layers that are convolutions have in
// common.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/short_conv.h"
#include "model/sequence_state.h"

namespace troupe {

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
