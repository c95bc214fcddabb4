// One head of Mamba-2: a delta net's (delta_net.h) that adds to its state without looking at what
// is known under a key. Per token, with the state S (key_dim rows, value_dim columns), and in
// Mamba's words C for q, B for k, x for v, dt for beta, D for skip:
//
//   S = decay * S + k (beta * v);  out = q S + skip * v
//
// Tokens are taken one after the other, as there and for the same reason: the usual form of
// prompts, products of chunks, would give other bits. Bound by memory for one token, by fma for
// many (state_space_bench).
//
// Bits: with sum(.) as there,
//   S[i] = fma(k[i], v * beta, decay * S[i]);  out = fma(v, skip, sum(S[i] q[i]))
// Truth: state_space_test.cc.
#pragma once

#include <cstddef>

#include "kernels/recurrent_head.h"

namespace troupe {

// Of `count` tiles from `first` on.
void RunStateSpace(const RecurrentHead& head, float skip, std::size_t first, std::size_t count);

}  // namespace troupe
