// The keys and values of one sequence, all layers, in one buffer made for a fixed number of
// positions. What a layer's part looks like inside is kernels/kv_layout.h's business.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"
#include "io/aligned_buffer.h"
#include "kernels/kv_layout.h"
#include "model/config.h"

namespace troupe {

class KvCache {
 public:
  // The layout of one layer for `positions` tokens (rounded up to whole tiles).
  static KvLayout LayoutFor(const ModelConfig& config, KvType type, std::size_t positions);
  static Bytes BytesFor(const ModelConfig& config, KvType type, std::size_t positions);

  static Result<KvCache> Create(const ModelConfig& config, KvType type, std::size_t positions);

  const KvLayout& layout() const { return layout_; }
  std::size_t capacity() const { return capacity_; }  // positions that may be used
  std::size_t length() const { return length_; }      // positions that are filled
  Bytes bytes() const { return buffer_.size(); }

  std::byte* Layer(std::uint32_t layer) { return buffer_.data() + layer * LayerBytes(); }
  const std::byte* Layer(std::uint32_t layer) const {
    return buffer_.data() + layer * LayerBytes();
  }

  // After a pass has stored `tokens` more positions in every layer.
  void Advance(std::size_t tokens);
  // Forgets the positions from `length` on: a chat that goes back, a guess that was wrong.
  void Truncate(std::size_t length);

 private:
  KvCache(KvLayout layout, std::size_t capacity, AlignedBuffer buffer)
      : layout_(layout), capacity_(capacity), buffer_(std::move(buffer)) {}
  std::size_t LayerBytes() const;

  KvLayout layout_;
  std::size_t capacity_;
  std::size_t length_ = 0;
  AlignedBuffer buffer_;
};

}  // namespace troupe
