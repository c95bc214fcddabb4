// A causal convolution along a sequence's tokens, each channel by itself, over the last few tokens:
// what comes before the state of a delta net or of Mamba-2, and the whole of LFM2's mixing. In
// place, a row a token. Bound by memory.
//
// Bits: an output is a chain of fma over the taps from the oldest on, begun with 0; then the bias
// is added, where there is one; then, where it is asked for, x * sigmoid(x) as in
// quant/exp_reference.h. Truth: short_conv_test.cc.
#pragma once

#include <cstddef>

namespace troupe {

struct ShortConv {
  std::size_t channels = 0;
  std::size_t taps = 0;            // tokens that an output sees, its own among them; at least 2
  const float* weights = nullptr;  // taps rows of channels, the oldest token's first
  const float* bias = nullptr;     // a number a channel; null: none
  // The inputs of the taps - 1 tokens before, rows of channels, the oldest first.
  const float* tail = nullptr;
  float* rows = nullptr;  // inputs, then outputs
  std::size_t stride = 0;
  std::size_t tokens = 0;
  bool silu = false;
};

// Channels from `first` on, `count` of them.
void RunShortConv(const ShortConv& conv, std::size_t first, std::size_t count);

// The inputs of the last taps - 1 tokens, in these channels: the tail of the tokens to come. Before
// RunShortConv, which overwrites the inputs. `tail` is not conv.tail.
void CopyConvTail(const ShortConv& conv, float* tail, std::size_t first, std::size_t count);

}  // namespace troupe
