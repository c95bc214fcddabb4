// Where heads of delta nets and of Mamba-2 lie in rows of queries, keys and values, and in the
// state: for the pass that runs them and for those who run them again.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/recurrent_head.h"
#include "model/config.h"
#include "model/sequence_state.h"

namespace troupe {

// A value head; its tokens, gates and where its answers go are the caller's to say.
inline RecurrentHead DeltaHeadOf(const DeltaNetConfig& delta, std::size_t head, const float* rows,
                                 std::size_t stride, const SequenceState::Layer& state) {
  const std::size_t dim = delta.head_dim, of_key = delta.value_heads / delta.key_heads;
  const std::size_t key = delta.tiled ? head % delta.key_heads : head / of_key;
  const std::size_t matrix = head * RecurrentHead::StateFloats(dim, dim);
  return {.key_dim = dim,
          .value_dim = dim,
          .q = rows + key * dim,
          .k = rows + delta.KeyRow() + key * dim,
          .v = rows + 2 * delta.KeyRow() + head * dim,
          .stride = stride,
          .before = state.matrices_before + matrix,
          .after = state.matrices_after + matrix};
}

// The same of Mamba-2, whose rows have values, keys and queries.
inline RecurrentHead SpaceHeadOf(const StateSpaceConfig& space, std::size_t head, const float* rows,
                                 std::size_t stride, const SequenceState::Layer& state) {
  const std::size_t group = head / (space.heads / space.groups);
  const float* const keys = rows + space.ValueRow();
  const std::size_t matrix = head * RecurrentHead::StateFloats(space.key_dim, space.head_dim);
  return {.key_dim = space.key_dim,
          .value_dim = space.head_dim,
          .q = keys + space.KeyRow() + group * space.key_dim,
          .k = keys + group * space.key_dim,
          .v = rows + head * space.head_dim,
          .stride = stride,
          .before = state.matrices_before + matrix,
          .after = state.matrices_after + matrix};
}

// Calls run(head) for all of its tokens, in two parts where the state between them is to be saved.
// Its matrix begins `matrix` floats into those of its layer.
template <class Run>
void RunAndSave(RecurrentHead head, const SequenceState::Layer& state, std::size_t matrix,
                Run&& run) {
  const std::size_t save_after = state.save_after;
  if (save_after > 0) {
    const std::size_t behind = head.tokens - save_after;
    head.tokens = save_after;
    run(head);
    std::copy_n(head.after, RecurrentHead::StateFloats(head.key_dim, head.value_dim),
                state.matrices_saved + matrix);
    head.q += save_after * head.stride;
    head.k += save_after * head.stride;
    head.v += save_after * head.stride;
    head.decay += save_after * head.gate_stride;
    head.beta += save_after * head.gate_stride;
    head.out += save_after * head.out_stride;
    head.before = head.after;
    head.tokens = behind;
  }
  run(head);
}

}  // namespace troupe
