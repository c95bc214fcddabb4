// The keys and values of all sequences of a model, or of some of its layers, in one buffer that is
// cut into pages: the same positions of all layers. A sequence reserves its pages before it grows
// (KvSequence) and gives them back when it ends. A page can be kept for longer (KvPage), and full
// ones be shared by sequences that begin alike: which do is runtime/prefix_cache.h's to know. What
// a layer's part of a page looks like is in kernels/kv_layout.h. Threads: one at a time; while a
// pass runs, its threads may use the pages of its sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "io/aligned_buffer.h"
#include "kernels/attention.h"
#include "kernels/kv_layout.h"
#include "model/config.h"
#include "model/layer_range.h"
#include "model/sequence_state.h"

namespace troupe {

struct KvPoolShape {
  KvType type = KvType::kF16;
  std::uint32_t context = 0;    // positions of one sequence, at most
  std::uint32_t sequences = 1;  // that have room for a whole context each
  // Of models whose sequences have a state beside keys and values; absent: of as many as
  // `sequences`.
  std::optional<StatePoolShape> states = std::nullopt;
};

class KvPage;
class KvSequence;

class KvPool {
 public:
  // Of each layer's part of a page; of layers without keys and values, too. A page has
  // Attention::kBlock positions, or those of the context if it is shorter, rounded up to whole
  // tiles: then a sequence is one page.
  static std::vector<KvLayout> LayoutsFor(const ModelConfig& config, LayerRange layers, KvType type,
                                          std::uint32_t context);
  static Bytes BytesFor(const ModelConfig& config, LayerRange layers, const KvPoolShape& shape);

  static Result<std::unique_ptr<KvPool>> Create(const ModelConfig& config, LayerRange layers,
                                                const KvPoolShape& shape);

  // A sequence without pages. The pool must outlive it.
  KvSequence NewSequence();

  // Asked, with the pages that are missing, where a sequence reserves more than are free: who keeps
  // pages of sequences that have ended may let them go. Empty: nobody does.
  using GiveUp = std::function<void(std::size_t pages)>;
  void OnShortage(GiveUp give_up) { give_up_ = std::move(give_up); }

  // Has whoever keeps pages of ended sequences, or states, let all of them go: what is in them is
  // not to be trusted.
  void GiveUpKept();

  // A page that nobody has, for who fills it in from elsewhere; none: all are in use.
  std::optional<KvPage> NewPage();
  // All layers of a page, one after the other; those without keys and values take no room. (An
  // encoder's put theirs where the first decoder layer has its own, while they are under way.)
  std::span<std::byte> BytesOf(const KvPage& page);
  bool HasLayer(std::uint32_t layer) const { return !without_[layer - layers_.first]; }
  std::size_t OffsetOf(std::uint32_t layer) const { return offset_[layer - layers_.first]; }

  // One a layer of layers().
  const std::vector<KvLayout>& layouts() const { return layouts_; }
  const KvLayout& LayoutOf(std::uint32_t layer) const { return layouts_[layer - layers_.first]; }
  KvType type() const { return layouts_.front().type; }
  LayerRange layers() const { return layers_; }
  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t page_positions() const { return layouts_.front().capacity; }
  std::size_t pages() const { return uses_.size(); }
  std::size_t free_positions() const { return free_.size() * page_positions(); }
  Bytes bytes() const { return buffer_.size(); }
  StatePool* states() { return states_.get(); }  // null: sequences have no state

 private:
  friend class KvPage;
  friend class KvSequence;

  KvPool(const ModelConfig& config, std::vector<KvLayout> layouts, LayerRange layers,
         std::size_t pages, AlignedBuffer buffer);

  std::byte* LayerOf(std::uint32_t page, std::uint32_t layer);
  std::uint32_t TakePage();
  void GiveBack(std::uint32_t page);
  bool HasFree(std::size_t pages);

  std::vector<KvLayout> layouts_;  // by layer
  LayerRange layers_;
  std::vector<bool> without_;        // layers that have no keys and values
  std::vector<std::size_t> offset_;  // of each layer in a page
  std::size_t page_bytes_;
  std::unique_ptr<StatePool> states_;
  AlignedBuffer buffer_;
  std::vector<std::uint32_t> uses_;  // of each page: the sequences that have it, and KvPages
  std::vector<std::uint32_t> free_;
  GiveUp give_up_;
};

// Keeps a page, and what is stored in it, after its sequence has ended. The pool must outlive it.
class KvPage {
 public:
  KvPage(KvPage&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)), page_(other.page_) {}
  KvPage& operator=(KvPage&& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(page_, other.page_);
    return *this;
  }
  ~KvPage() {
    if (pool_ != nullptr) pool_->GiveBack(page_);
  }

  bool shared() const { return pool_->uses_[page_] > 1; }  // somebody else has it, too

 private:
  friend class KvPool;
  friend class KvSequence;
  KvPage(KvPool& pool, std::uint32_t page) : pool_(&pool), page_(page) { ++pool.uses_[page]; }

  KvPool* pool_;
  std::uint32_t page_;
};

// One sequence's pages. What it has reserved is its own until it is destroyed or gives it back, so
// a pass over a sequence that has room cannot fail for want of memory.
class KvSequence {
 public:
  KvSequence(KvSequence&& other) noexcept;
  KvSequence& operator=(KvSequence&& other) noexcept;
  ~KvSequence() { GiveBackAll(); }

  std::size_t length() const { return length_; }  // positions that are filled
  // Positions that may be filled: those of the pages it has.
  std::size_t capacity() const { return pages_.size() * page_positions(); }

  // Room for `positions` in all, and for its state if the model has one. kResourceExhausted, with
  // nothing changed, if the pool has not enough free pages.
  Status Reserve(std::size_t positions);
  // The page of these positions; what is filled of it stays as it is as long as the page is kept.
  KvPage Page(std::size_t index) { return KvPage(*pool_, pages_[index]); }
  // Has a full page in place of its own, reserved or not, at the first position that is not filled,
  // or at those of the same page before it, which hold the same; and counts it as filled. Both are
  // of one pool.
  void Share(const KvPage& full);
  // Goes on in a page that nobody else has, of which the positions up to `length` are filled. It
  // has no page of its own there.
  void Take(KvPage page, std::size_t length);
  // Counts the positions up to `length` as filled: those of a page, of which it copies them into
  // its own. They lie in the page of the first position that is not filled; it has room for them.
  void Copy(const KvPage& from, std::size_t length);

  // A pass that writes positions and state begins; Advance, after it has stored `tokens` more
  // positions in every layer. Without the latter nothing has happened.
  void BeginPass(const StateKeeping& keeping = {});
  void Advance(std::size_t tokens);
  // Of an encoder-decoder, whose first `rows` positions are the encoder's: they are filled with
  // keys and values of the decoder's cross-attention. It is empty before.
  void EndEncoder(std::size_t rows);
  std::size_t encoded() const { return encoded_; }  // 0: none yet, or no encoder
  // Forgets the positions from `length` on: a chat that goes back, a guess that was wrong. Keeps
  // their pages, except for shared ones, which others still read: `length` may not lie within one.
  // Gives how many positions are filled: fewer than `length` if it has a state, which could only go
  // back further (sequence_state.h); the tokens between are to be fed again. An encoder's positions
  // go all or none.
  std::size_t Truncate(std::size_t length);
  // The same after a pass whose rows' inputs were kept (StateKeeping), to its first rows, one at
  // least: between the two calls the state is where the pass began, and is to be brought behind
  // these rows (state_replay.h). Their keys and values stay as they are.
  void BeginReplay();
  void EndReplay(std::size_t rows);
  // Truncates to at most `positions`, and gives back the pages that these do not need.
  void ShrinkTo(std::size_t positions);

  const KvLayout& LayoutOf(std::uint32_t layer) const { return pool_->LayoutOf(layer); }
  PagedKv Layer(std::uint32_t layer) const;
  // Where a layer stores what belongs to `position`, at `position` % page_positions().
  std::byte* PageOf(std::uint32_t layer, std::size_t position) const;
  // REQUIRES: the model has recurrent layers, and room was reserved.
  const SequenceState& state() const { return *state_; }
  // The same as it was left by a sequence of the same tokens, as many as are filled here.
  void Restore(const SavedState& state);
  std::optional<SavedState> TakeSaved() { return state_->TakeSaved(); }
  // The state of a sequence that has ended, and is only destroyed now.
  SavedState LeaveState() { return std::move(*state_).Leave(); }

 private:
  friend class KvPool;
  explicit KvSequence(KvPool& pool) : pool_(&pool) {}
  std::size_t page_positions() const { return pool_->page_positions(); }
  std::size_t PagesFor(std::size_t positions) const {
    return (positions + page_positions() - 1) / page_positions();
  }
  bool IsShared(std::uint32_t page) const { return pool_->uses_[page] > 1; }
  void GiveBackAll();

  KvPool* pool_;
  std::vector<std::uint32_t> pages_;
  std::size_t length_ = 0;
  std::size_t encoded_ = 0;
  std::optional<SequenceState> state_;  // of models that have one, once room was reserved
};

}  // namespace troupe
