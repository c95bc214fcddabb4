// A short convolution of one sequence's rows of a pass together with the state that it leaves: what
// delta nets and layers that are convolutions have in common.
#pragma once

#include <cstddef>

#include "kernels/short_conv.h"
#include "model/sequence_state.h"

namespace troupe {

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
