#include "model/kv_pool.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

std::size_t PagePositions(std::uint32_t context) {
  return std::min<std::size_t>(AlignUp(context, KvLayout::kTile), Attention::kBlock);
}

std::size_t BytesOfLayer(const KvLayout& layout) {
  return AlignUp(layout.TotalBytes().count(), kCacheLine.count());
}

std::size_t PageCount(const KvPoolShape& shape) {
  const std::size_t page = PagePositions(shape.context);
  return shape.sequences * ((shape.context + page - 1) / page);
}

}  // namespace

std::vector<KvLayout> KvPool::LayoutsFor(const ModelConfig& config, LayerRange layers, KvType type,
                                         std::uint32_t context) {
  std::vector<KvLayout> layouts;
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    const AttentionConfig& a = config.AttentionOf(layer);
    layouts.push_back({.type = type,
                       .kv_heads = a.kv_heads,
                       .k_dim = a.key_dim,
                       .v_dim = a.value_dim,
                       .values_in_keys = a.mla.has_value(),
                       .capacity = PagePositions(context)});
  }
  return layouts;
}

Bytes KvPool::BytesFor(const ModelConfig& config, LayerRange layers, const KvPoolShape& shape) {
  const std::vector<KvLayout> layouts = LayoutsFor(config, layers, shape.type, shape.context);
  std::size_t page = 0;
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    if (config.HasKeys(layer)) page += BytesOfLayer(layouts[layer - layers.first]);
  }
  return Bytes(PageCount(shape) * page);
}

Result<std::unique_ptr<KvPool>> KvPool::Create(const ModelConfig& config, LayerRange layers,
                                               const KvPoolShape& shape) {
  TROUPE_CHECK(shape.context > 0 && shape.sequences > 0);
  TROUPE_CHECK(layers.first < layers.end && layers.end <= config.layers);
  std::vector<KvLayout> layouts = LayoutsFor(config, layers, shape.type, shape.context);
  for (const KvLayout& layout : layouts) TROUPE_RETURN_IF_ERROR(layout.Check());
  // No huge pages: heads lie far apart, and 2 MiB at a time would make a whole page resident for
  // its first token.
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Allocate(BytesFor(config, layers, shape), {.alignment = kPage}));
  std::unique_ptr<KvPool> pool(
      new KvPool(config, std::move(layouts), layers, PageCount(shape), std::move(buffer)));
  if (config.HasState()) {
    TROUPE_ASSIGN_OR_RETURN(
        pool->states_,
        StatePool::Create(config, layers,
                          shape.states.value_or(StatePoolShape{.sequences = shape.sequences})));
  }
  return pool;
}

KvPool::KvPool(const ModelConfig& config, std::vector<KvLayout> layouts, LayerRange layers,
               std::size_t pages, AlignedBuffer buffer)
    : layouts_(std::move(layouts)),
      layers_(layers),
      page_bytes_(0),
      buffer_(std::move(buffer)),
      uses_(pages) {
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    // An encoder's layers all have the place of the first decoder layer, one after the other.
    offset_.push_back(page_bytes_);
    without_.push_back(!config.HasKeys(layer));
    if (config.HasKeys(layer)) page_bytes_ += BytesOfLayer(LayoutOf(layer));
  }
  // Taken from the end: the pages at the front of the buffer come first.
  for (std::size_t page = pages; page > 0; --page) {
    free_.push_back(static_cast<std::uint32_t>(page - 1));
  }
}

KvSequence KvPool::NewSequence() { return KvSequence(*this); }

std::optional<KvPage> KvPool::NewPage() {
  if (free_.empty()) return std::nullopt;
  const std::uint32_t index = TakePage();
  KvPage page(*this, index);
  GiveBack(index);  // the page alone has it
  return page;
}

std::span<std::byte> KvPool::BytesOf(const KvPage& page) {
  TROUPE_CHECK(page.pool_ == this);
  return {LayerOf(page.page_, layers_.first), page_bytes_};
}

std::byte* KvPool::LayerOf(std::uint32_t page, std::uint32_t layer) {
  TROUPE_DCHECK(layers_.Contains(layer));
  return buffer_.data() + page * page_bytes_ + offset_[layer - layers_.first];
}

std::uint32_t KvPool::TakePage() {
  const std::uint32_t page = free_.back();
  free_.pop_back();
  uses_[page] = 1;
  return page;
}

void KvPool::GiveBack(std::uint32_t page) {
  TROUPE_CHECK(uses_[page] > 0);
  if (--uses_[page] == 0) free_.push_back(page);
}

bool KvPool::HasFree(std::size_t pages) {
  if (pages > free_.size() && give_up_) give_up_(pages - free_.size());
  return pages <= free_.size();
}

void KvPool::GiveUpKept() {
  if (states_ != nullptr) states_->GiveUpSaved();
  for (std::size_t free = free_.size();; free = free_.size()) {
    if (give_up_) give_up_(1);
    if (free_.size() == free) return;
  }
}

KvSequence::KvSequence(KvSequence&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      length_(std::exchange(other.length_, 0)),
      encoded_(std::exchange(other.encoded_, 0)),
      state_(std::exchange(other.state_, std::nullopt)) {}

KvSequence& KvSequence::operator=(KvSequence&& other) noexcept {
  if (this == &other) return *this;
  GiveBackAll();
  pool_ = other.pool_;
  pages_ = std::exchange(other.pages_, {});
  length_ = std::exchange(other.length_, 0);
  encoded_ = std::exchange(other.encoded_, 0);
  state_ = std::exchange(other.state_, std::nullopt);
  return *this;
}

void KvSequence::GiveBackAll() {
  for (const std::uint32_t page : pages_) pool_->GiveBack(page);
  pages_.clear();
  length_ = 0;
  encoded_ = 0;
  state_.reset();
}

Status KvSequence::Reserve(std::size_t positions) {
  if (positions <= capacity()) return OkStatus();
  if (!pool_->HasFree(PagesFor(positions) - pages_.size())) {
    return Error(
        Code::kResourceExhausted, "{} more positions of KV cache asked for, {} of {} are free",
        positions - capacity(), pool_->free_positions(), pool_->pages() * page_positions());
  }
  if (pool_->states_ != nullptr && !state_) {
    TROUPE_ASSIGN_OR_RETURN(state_, SequenceState::Create(*pool_->states_));
  }
  pages_.reserve(PagesFor(positions));
  while (capacity() < positions) pages_.push_back(pool_->TakePage());
  return OkStatus();
}

void KvSequence::Share(const KvPage& full) {
  TROUPE_CHECK(full.pool_ == pool_);
  const std::size_t index = length_ / page_positions();
  if (index == pages_.size()) {
    pages_.push_back(full.page_);
  } else {
    pool_->GiveBack(std::exchange(pages_[index], full.page_));
  }
  ++pool_->uses_[full.page_];
  length_ = (index + 1) * page_positions();
}

void KvSequence::Take(KvPage page, std::size_t length) {
  TROUPE_CHECK(page.pool_ == pool_ && !page.shared() && length_ == capacity());
  TROUPE_CHECK(length > length_ && PagesFor(length) == pages_.size() + 1);
  pages_.push_back(page.page_);
  page.pool_ = nullptr;
  length_ = length;
}

void KvSequence::Copy(const KvPage& from, std::size_t length) {
  const std::size_t index = length_ / page_positions();
  TROUPE_CHECK(from.pool_ == pool_ && length > length_ && length <= capacity());
  TROUPE_CHECK(PagesFor(length) == index + 1 && !IsShared(pages_[index]));
  std::memcpy(pool_->LayerOf(pages_[index], pool_->layers_.first),
              pool_->LayerOf(from.page_, pool_->layers_.first), pool_->page_bytes_);
  length_ = length;
}

void KvSequence::BeginPass(const StateKeeping& keeping) {
  if (!state_) return;
  TROUPE_CHECK(state_->length() == length_);
  state_->Begin(keeping);
}

void KvSequence::Restore(const SavedState& state) {
  TROUPE_CHECK(state.length() == length_);
  state_->Restore(state);
}

void KvSequence::Advance(std::size_t tokens) {
  TROUPE_CHECK(length_ + tokens <= capacity());
  length_ += tokens;
  if (state_) state_->Advance(tokens);
}

void KvSequence::EndEncoder(std::size_t rows) {
  TROUPE_CHECK(length_ == 0 && rows > 0 && rows <= capacity());
  length_ = encoded_ = rows;
}

void KvSequence::BeginReplay() {
  const std::optional<std::size_t> from = state_->ReplaysFrom();
  TROUPE_CHECK(from.has_value());
  Truncate(*from);
}

void KvSequence::EndReplay(std::size_t rows) {
  Advance(rows);
  state_->ForgetInputs();
}

std::size_t KvSequence::Truncate(std::size_t length) {
  TROUPE_CHECK(length <= length_);
  if (state_) length = state_->RollBack(length);
  if (length < encoded_) length = encoded_ = 0;  // a part of an encoder's prompt is another prompt
  TROUPE_CHECK(length % page_positions() == 0 || !IsShared(pages_[length / page_positions()]));
  length_ = length;
  const auto past = pages_.begin() + static_cast<std::ptrdiff_t>(PagesFor(length));
  const auto shared = std::stable_partition(past, pages_.end(),
                                            [&](std::uint32_t page) { return !IsShared(page); });
  std::for_each(shared, pages_.end(), [&](std::uint32_t page) { pool_->GiveBack(page); });
  pages_.erase(shared, pages_.end());
  return length_;
}

void KvSequence::ShrinkTo(std::size_t positions) {
  if (positions < length_) Truncate(positions);
  while (pages_.size() > PagesFor(positions)) {
    pool_->GiveBack(pages_.back());
    pages_.pop_back();
  }
}

PagedKv KvSequence::Layer(std::uint32_t layer) const {
  return {.memory = pool_->LayerOf(0, layer), .page_bytes = pool_->page_bytes_, .pages = pages_};
}

std::byte* KvSequence::PageOf(std::uint32_t layer, std::size_t position) const {
  return pool_->LayerOf(pages_[position / page_positions()], layer);
}

}  // namespace troupe
