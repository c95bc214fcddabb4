// Sizes of layers that have a recurrence in place of attention: a part of config.h.
#pragma once

#include <cstdint>

namespace troupe {

// Of a head: what somebody keeps on the stack is sized by it.
inline constexpr std::uint32_t kMostHeadDim = 1024;

// Layers whose past is a matrix a head (kernels/delta_net.h) behind a short convolution.
struct DeltaNetConfig {
  std::uint32_t key_heads = 0;
  std::uint32_t value_heads = 0;  // a multiple of key_heads
  std::uint32_t head_dim = 0;     // of keys and of values
  std::uint32_t taps = 0;         // tokens that the convolution sees
  // Which key head a value head reads: h % key_heads, or h / (value_heads / key_heads).
  bool tiled = false;
  bool fused_gates = false;  // both gates come of one matrix, key head by key head

  std::uint32_t KeyRow() const { return key_heads * head_dim; }
  std::uint32_t ValueRow() const { return value_heads * head_dim; }
  std::uint32_t Channels() const { return 2 * KeyRow() + ValueRow(); }  // queries, keys, values
};

// Mamba-2: layers whose past is a matrix a head, too (kernels/state_space.h), behind a convolution.
struct StateSpaceConfig {
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t groups = 0;   // a divisor of heads: those of a group share their keys and queries
  std::uint32_t key_dim = 0;  // of these; what Mamba calls the size of the state
  std::uint32_t taps = 0;     // tokens that the convolution sees

  std::uint32_t ValueRow() const { return heads * head_dim; }
  std::uint32_t KeyRow() const { return groups * key_dim; }
  std::uint32_t Channels() const { return ValueRow() + 2 * KeyRow(); }  // values, keys, queries
  // What one matrix gives of a token: the gate behind the heads, the channels, a step a head.
  std::uint32_t InRow() const { return ValueRow() + Channels() + heads; }
};

}  // namespace troupe
