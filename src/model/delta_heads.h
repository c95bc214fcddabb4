// Where a delta net's heads lie in rows of queries, keys and values, and in the state: for the pass
// that runs them and for those who run them again.
#pragma once

#include <cstddef>

#include "kernels/delta_net.h"
#include "model/config.h"
#include "model/sequence_state.h"

namespace troupe {

// A value head; its tokens, gates and where its answers go are the caller's to say.
inline DeltaNetHead DeltaHeadOf(const DeltaNetConfig& delta, std::size_t head, const float* rows,
                                std::size_t stride, const SequenceState::Layer& state) {
  const std::size_t dim = delta.head_dim, of_key = delta.value_heads / delta.key_heads;
  const std::size_t key = delta.tiled ? head % delta.key_heads : head / of_key;
  const std::size_t matrix = head * DeltaNetHead::StateFloats(dim, dim);
  return {.key_dim = dim,
          .value_dim = dim,
          .q = rows + key * dim,
          .k = rows + delta.KeyRow() + key * dim,
          .v = rows + 2 * delta.KeyRow() + head * dim,
          .stride = stride,
          .before = state.matrices_before + matrix,
          .after = state.matrices_after + matrix};
}

}  // namespace troupe
