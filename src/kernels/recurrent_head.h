// One head of a layer whose past is a matrix instead of a cache: what delta_net.h and state_space.h
// are called with. They say what a token does to the matrix.
#pragma once

#include <cstddef>

namespace troupe {

struct RecurrentHead {
  static constexpr std::size_t kTile = 16;   // columns that lie together
  static constexpr std::size_t kChains = 8;  // of key_dim, which is a multiple of it

  std::size_t key_dim = 0;
  std::size_t value_dim = 0;  // a multiple of kTile
  std::size_t tokens = 0;
  // A row a token, this many floats apart.
  const float* q = nullptr;
  const float* k = nullptr;
  const float* v = nullptr;
  std::size_t stride = 0;
  const float* decay = nullptr;  // a number a token
  const float* beta = nullptr;
  std::size_t gate_stride = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
  // The state before the first token and after the last one; may be the same memory. Tile after
  // tile, each a row of kTile columns a key.
  const float* before = nullptr;
  float* after = nullptr;

  std::size_t tiles() const { return value_dim / kTile; }
  static std::size_t StateFloats(std::size_t key_dim, std::size_t value_dim) {
    return key_dim * value_dim;
  }
};

}  // namespace troupe
