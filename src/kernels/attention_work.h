// What attention's inner files share that does not depend on the target: which query rows a task
// has, and how its scratch memory is divided. For attention*.cc and attention*-inl.h alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "kernels/attention.h"

namespace troupe {

// The first of the keys below `limit` that a window lets a row see.
inline std::size_t FirstKey(std::size_t limit, std::size_t window) {
  return window == 0 || window > limit ? 0 : limit - window;
}

// The query rows of one task: rows first .. first + count - 1 of one kv head's, which are numbered
// token by token, within a token by query head.
struct AttentionRows {
  // Enough that converting a panel (a few hundred instructions) costs little against multiplying
  // it with all rows; few enough for scores and sums to stay in the second-level cache. A multiple
  // of the six rows of a tile.
  static constexpr std::size_t kMost = 48;

  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t group = 1;   // query heads per kv head
  std::size_t start = 0;   // position of token 0
  std::size_t window = 0;  // keys that a row sees; 0: all
  std::size_t first_key = 0;
  std::size_t keys = 0;  // as of AttentionCall
  PositionBias bias = {};

  std::size_t Token(std::size_t r) const { return (first + r) / group; }
  std::size_t HeadInGroup(std::size_t r) const { return (first + r) % group; }
  // How many keys row r may see: those of positions below this.
  std::size_t Limit(std::size_t r) const { return keys > 0 ? keys : Position(r) + 1; }
  // And those from this one on.
  std::size_t Begin(std::size_t r) const { return std::max(first_key, FirstKey(Limit(r), window)); }
  std::size_t Position(std::size_t r) const { return start + Token(r); }
};

// All query rows of a call.
inline AttentionRows RowsOf(const AttentionCall& call) {
  const std::size_t group = call.heads / call.layout.kv_heads;
  return {.first = 0,
          .count = call.tokens * group,
          .group = group,
          .start = call.start,
          .window = call.window,
          .first_key = call.first,
          .keys = call.keys,
          .bias = call.bias};
}

inline std::size_t Blocks(std::size_t positions) {
  return (positions + Attention::kBlock - 1) / Attention::kBlock;
}

struct RowMatrix {
  float* data;
  std::size_t stride;
  float* Row(std::size_t r) const { return data + r * stride; }
};

// Of a streaming softmax: the largest score so far, and the sum of e^(score - largest).
struct SoftmaxState {
  float largest, sum;
};

// Where split keys leave their partial results: a record per token, query head and block.
class Partials {
 public:
  static constexpr std::size_t kStateFloats = 2;  // largest and sum; then v_dim sums of values

  struct BlockRange {
    std::size_t first, count;
  };

  Partials(const AttentionCall& call, BlockRange blocks, float* data)
      : heads_(call.heads), blocks_(blocks), record_(RecordFloats(call.layout)), data_(data) {}

  static std::size_t RecordFloats(const KvLayout& layout) { return kStateFloats + layout.v_dim; }
  float* Record(std::size_t token, std::size_t head, std::size_t block) const {
    return data_ + ((token * heads_ + head) * blocks_.count + (block - blocks_.first)) * record_;
  }

 private:
  std::size_t heads_;
  BlockRange blocks_;
  std::size_t record_;
  float* data_;
};

// The scratch memory of one thread, divided.
struct AttentionWork {
  RowMatrix q;          // [row][k_dim], scaled
  RowMatrix scores;     // [row][kBlock]
  RowMatrix block_out;  // [row][v_dim rounded up to 16]: of the block under way
  RowMatrix total_out;  // of all blocks before it
  SoftmaxState* block_state;
  SoftmaxState* total_state;
  float* panel;  // aligned to 64 bytes
  float* other_panel;

  static std::size_t Floats(const KvLayout& layout);
  static AttentionWork Divide(const KvLayout& layout, float* scratch);
};

}  // namespace troupe
