// Attention of consecutive tokens of one sequence over the keys and values stored so far
// (kv_layout.h), one layer: causal, or over the same keys for all (encoders, and decoders that look
// at one); grouped queries, multi-head latent attention, decode and prefill alike,
// by a streaming softmax, so that no matrix of tokens by tokens exists.
// Design and figures: docs/design/attention.md. Rotation, projection and storing come before.
//
// Bits: an output depends on its query, its keys and its values alone; not on the target, the
// number of threads, whether its token came alone or in a chunk, or whether the keys were split
// among tasks. For that the keys are cut into blocks of kBlock positions from position 0. A block
// gives
//   s_j = fma chain over k_dim of (scale * q_d) * k_jd;  m = max s_j;  p_j = e^(s_j - m);
//   l = sum of p_j over 16 lanes;  o_d = fma chain over j of p_j * v_jd
// and blocks are merged in ascending order. With a window, j begins at the first key that the query
// sees, and blocks before it are left out; so it does where the first keys are not the call's. A
// bias is added to s_j before anything else is done with it. A head with a sink merges one more
// block at the end: of one key, whose score is the sink, and without values. Truth:
// attention_reference.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "kernels/kv_layout.h"

namespace troupe {

// One layer's keys and values of one sequence. They lie in pages of layout.capacity positions, each
// laid out as kv_layout.h says: page i of the sequence is page pages[i] of the memory.
struct PagedKv {
  const std::byte* memory = nullptr;  // this layer's part of page 0
  std::size_t page_bytes = 0;         // from one page to the next
  std::span<const std::uint32_t> pages;

  const std::byte* Page(std::size_t i) const { return memory + pages[i] * page_bytes; }
};

// What is added to the scores of each head, by how far the key is from the query.
struct PositionBias {
  const float* numbers = nullptr;  // null: nothing
  std::size_t stride = 0;          // from one head's to the next
  std::size_t zero = 0;            // where that of a key at the query's own position lies

  // Of a key, and behind it of those that follow it. They are there for all that a query sees.
  const float* Of(std::size_t head, std::size_t query, std::size_t key) const {
    return numbers + head * stride + (zero + key - query);
  }
};

struct AttentionCall {
  KvLayout layout;          // of a page: kBlock positions, or fewer if one page is all there is
  PagedKv kv;               // holds the keys of positions < Positions()
  std::uint32_t heads = 0;  // query head h reads kv head h / (heads / kv_heads)
  float scale = 1.0f;       // on query times key
  std::size_t start = 0;    // position of the first token
  std::size_t tokens = 0;
  std::size_t window = 0;  // keys that a query sees, its own the last; 0: all before it
  std::size_t first = 0;   // the first position that any query sees
  std::size_t keys = 0;    // all see those of positions below this; 0: up to their own
  PositionBias bias = {};
  const float* sinks = nullptr;  // a score a head that takes its share of the softmax; null: none
  const float* q = nullptr;      // [tokens][heads][k_dim], tokens q_stride apart
  std::size_t q_stride = 0;
  float* out = nullptr;  // [tokens][heads][v_dim], tokens out_stride apart
  std::size_t out_stride = 0;

  // Positions below which all keys lie that the last token sees.
  std::size_t Positions() const { return keys > 0 ? keys : start + tokens; }
};

// The call cut into tasks: run all of tasks(), then all of merges(), each set in any order on any
// threads. Holds no memory of its own; what it points to must outlive it.
class Attention {
 public:
  static constexpr std::size_t kBlock = 256;

  // Scratch of one thread.
  static std::size_t ScratchFloats(const KvLayout& layout);
  // What splitting the keys among tasks needs for `tokens` tokens over `positions` positions.
  static std::size_t PartialFloats(const KvLayout& layout, std::uint32_t heads, std::size_t tokens,
                                   std::size_t positions);

  // Few tokens over many keys give too few tasks for `threads` threads; the keys are then split as
  // well, if `partials` has the room.
  Attention(const AttentionCall& call, std::size_t threads, std::span<float> partials);

  std::size_t tasks() const { return call_.layout.kv_heads * tiles_ * splits_; }
  void Run(std::size_t task, std::span<float> scratch) const;

  // Zero if the keys are not split.
  std::size_t merges() const { return splits_ == 1 ? 0 : call_.tokens * call_.heads; }
  void Merge(std::size_t merge) const;

 private:
  AttentionCall call_;
  std::span<float> partials_;
  std::size_t tile_rows_;  // query rows of one kv head that one task handles
  std::size_t tiles_;
  std::size_t splits_ = 1;       // 1, or the number of key blocks that are seen
  std::size_t first_block_ = 0;  // the first of those
};

}  // namespace troupe
