// The keys and values of all sequences of a model, or of some of its layers, in one buffer that is
// cut into pages: the same positions of all layers. A sequence reserves its pages before it grows
// (KvSequence) and gives them back when it ends. Full pages can be shared by sequences that begin
// alike. What a layer's part of a page looks like is in kernels/kv_layout.h. Threads: one at a
// time; while a pass runs, its threads may use the pages of its sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "io/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/kv_layout.h"
#include "model/config.h"
#include "model/layer_range.h"

namespace troupe {

struct KvPoolShape {
  KvType type = KvType::kF16;
  std::uint32_t context = 0;    // positions of one sequence, at most
  std::uint32_t sequences = 1;  // that have room for a whole context each
};

class KvSequence;

class KvPool {
 public:
  // Of one layer's part of a page. A page has Attention::kBlock positions, or those of the context
  // if it is shorter, rounded up to whole tiles: then a sequence is one page.
  static KvLayout LayoutFor(const ModelConfig& config, KvType type, std::uint32_t context);
  static Bytes BytesFor(const ModelConfig& config, LayerRange layers, const KvPoolShape& shape);

  static Result<std::unique_ptr<KvPool>> Create(const ModelConfig& config, LayerRange layers,
                                                const KvPoolShape& shape);

  // A sequence without pages. The pool must outlive it.
  KvSequence NewSequence();

  const KvLayout& layout() const { return layout_; }
  LayerRange layers() const { return layers_; }
  std::size_t page_positions() const { return layout_.capacity; }
  std::size_t pages() const { return uses_.size(); }
  std::size_t free_positions() const { return free_.size() * page_positions(); }
  Bytes bytes() const { return buffer_.size(); }

 private:
  friend class KvSequence;

  KvPool(KvLayout layout, LayerRange layers, std::size_t pages, AlignedBuffer buffer);

  std::byte* LayerOf(std::uint32_t page, std::uint32_t layer);
  std::uint32_t TakePage();
  void GiveBack(std::uint32_t page);

  KvLayout layout_;
  LayerRange layers_;
  std::size_t layer_bytes_, page_bytes_;
  AlignedBuffer buffer_;
  std::vector<std::uint32_t> uses_;  // of each page: the sequences that have it
  std::vector<std::uint32_t> free_;
};

// One sequence's pages. What it has reserved is its own until it is destroyed or gives it back, so
// a pass over a sequence that has room cannot fail for want of memory.
class KvSequence {
 public:
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  ~KvSequence() { ShrinkTo(0); }

  std::size_t length() const { return length_; }  // positions that are filled
  // Positions that may be filled: those of the pages it has.
  std::size_t capacity() const { return pages_.size() * page_positions(); }

  // Room for `positions` in all. kResourceExhausted, with nothing changed, if the pool has not
  // enough free pages.
  Status Reserve(std::size_t positions);
  // Begins as `other` does: shares its first `positions`, which are full pages of it, and counts
  // them as filled. This sequence has no pages yet; both are of one pool.
  void ShareFrom(const KvSequence& other, std::size_t positions);

  // After a pass has stored `tokens` more positions in every layer.
  void Advance(std::size_t tokens);
  // Forgets the positions from `length` on: a chat that goes back, a guess that was wrong. Keeps
  // their pages, except for shared ones, which others still read: `length` may not lie within one.
  void Truncate(std::size_t length);
  // Truncates to at most `positions`, and gives back the pages that these do not need.
  void ShrinkTo(std::size_t positions);

  const KvLayout& layout() const { return pool_->layout_; }
  PagedKv Layer(std::uint32_t layer) const;
  // Where a layer stores what belongs to `position`, at `position` % page_positions().
  std::byte* PageOf(std::uint32_t layer, std::size_t position);

 private:
  friend class KvPool;
  explicit KvSequence(KvPool& pool) : pool_(&pool) {}
  std::size_t page_positions() const { return pool_->page_positions(); }
  std::size_t PagesFor(std::size_t positions) const {
    return (positions + page_positions() - 1) / page_positions();
  }
  bool IsShared(std::uint32_t page) const { return pool_->uses_[page] > 1; }

  KvPool* pool_;
  std::vector<std::uint32_t> pages_;
  std::size_t length_ = 0;
};

}  // namespace troupe
