// One head of a gated delta net: attention whose past is one matrix instead of a cache. Per token,
// with the state S (key_dim rows, value_dim columns):
//
//   S = decay * S;  S += k (beta * (v - k S));  out = q S
//
// Tokens are taken one after the other in this form, whether they come alone or in a long chunk: a
// chunked form, as is usual for prompts, would give other bits. Columns do not depend on each
// other: a tile of 16 is 8 KiB for 128 keys and stays in the first-level cache for all tokens of
// the call. Bound by memory for one token, by fma for many (delta_net_bench).
//
// Bits: with sum(.) eight chains of fma along the keys (chain i % 8 takes key i, in order), added
// as 0 + 4, 1 + 5, ..., then + 2, then + 1:
//   d = (v - decay * sum(S[i] k[i])) * beta
//   S[i] = fma(k[i], d, decay * S[i]);  out = sum(S[i] q[i])
// Truth: delta_net_test.cc.
#pragma once

#include <cstddef>

#include "kernels/recurrent_head.h"

namespace troupe {

using DeltaNetHead = RecurrentHead;

// Of `count` tiles from `first` on.
void RunDeltaNet(const DeltaNetHead& head, std::size_t first, std::size_t count);

}  // namespace troupe
