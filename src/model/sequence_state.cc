#include "model/sequence_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/recurrent_head.h"

namespace troupe {
namespace {

// Of a layer with a state, whichever kind all of them have.
struct StateShape {
  std::size_t channels = 0, taps = 0;  // of the convolution
  std::size_t matrices = 0;            // floats of all heads'
  // What a row puts into a layer's state: the channels as the convolution reads them, and two gates
  // a head.
  std::size_t inputs = 0;
};

StateShape ShapeOf(const ModelConfig& config) {
  if (config.delta) {
    const DeltaNetConfig& delta = *config.delta;
    const std::size_t matrix = RecurrentHead::StateFloats(delta.head_dim, delta.head_dim);
    return {.channels = delta.Channels(),
            .taps = delta.taps,
            .matrices = delta.value_heads * matrix,
            .inputs = delta.Channels() + 2 * std::size_t{delta.value_heads}};
  }
  if (config.space) {
    const StateSpaceConfig& space = *config.space;
    const std::size_t matrix = RecurrentHead::StateFloats(space.key_dim, space.head_dim);
    return {.channels = space.Channels(),
            .taps = space.taps,
            .matrices = space.heads * matrix,
            .inputs = space.Channels() + 2 * std::size_t{space.heads}};
  }
  return {.channels = config.width, .taps = config.short_conv_taps, .inputs = config.width};
}

std::size_t TailFloats(const StateShape& shape) { return (shape.taps - 1) * shape.channels; }

std::size_t LayerFloats(const ModelConfig& config) {
  constexpr std::size_t kLine = kCacheLine.count() / sizeof(float);
  const StateShape shape = ShapeOf(config);
  return AlignUp(TailFloats(shape) + shape.matrices, kLine);
}

std::size_t RecurrentLayers(const ModelConfig& config, LayerRange layers) {
  std::size_t count = 0;
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    count += config.IsRecurrent(layer) ? 1 : 0;
  }
  return count;
}

constexpr std::size_t kPlaces = 2;  // of a sequence

std::size_t PlacesOf(const StatePoolShape& shape) {
  return kPlaces * shape.sequences + shape.saved;
}

}  // namespace

Bytes StatePool::BytesFor(const ModelConfig& config, LayerRange layers,
                          const StatePoolShape& shape) {
  if (!config.HasState()) return Bytes();
  const std::size_t floats =
      PlacesOf(shape) * LayerFloats(config) + shape.inputs * ShapeOf(config).inputs;
  return Bytes(RecurrentLayers(config, layers) * floats * sizeof(float));
}

Result<std::unique_ptr<StatePool>> StatePool::Create(const ModelConfig& config, LayerRange layers,
                                                     const StatePoolShape& shape) {
  TROUPE_CHECK(config.HasState() && shape.sequences > 0);
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Allocate(BytesFor(config, layers, shape), {.alignment = kPage}));
  return std::unique_ptr<StatePool>(new StatePool(config, layers, shape, std::move(buffer)));
}

StatePool::StatePool(const ModelConfig& config, LayerRange layers, const StatePoolShape& shape,
                     AlignedBuffer buffer)
    : layers_(layers),
      tail_floats_(TailFloats(ShapeOf(config))),
      layer_floats_(tail_floats_ + ShapeOf(config).matrices),
      places_(PlacesOf(shape)),
      input_rows_(shape.inputs),
      input_floats_(ShapeOf(config).inputs),
      buffer_(std::move(buffer)) {
  const std::size_t floats = LayerFloats(config);
  std::size_t before = 0;
  for (std::uint32_t layer = layers.first; layer < layers.end; ++layer) {
    before_.push_back(before);
    offset_.push_back(before * floats);
    before += config.IsRecurrent(layer) ? 1 : 0;
  }
  place_floats_ = before * floats;
  for (std::size_t place = places_; place > 0; --place) {
    free_.push_back(static_cast<std::uint32_t>(place - 1));
  }
}

bool StatePool::HasFree(std::size_t places) {
  if (places > free_.size() && give_up_) give_up_(places - free_.size());
  return places <= free_.size();
}

void StatePool::GiveUpSaved() {
  for (std::size_t free = free_.size();; free = free_.size()) {
    if (give_up_) give_up_(1);
    if (free_.size() == free) return;
  }
}

std::uint32_t StatePool::TakePlace() {
  const std::uint32_t place = free_.back();
  free_.pop_back();
  return place;
}

float* StatePool::LayerOf(std::uint32_t place, std::uint32_t layer) {
  return reinterpret_cast<float*>(buffer_.data()) + place * place_floats_ +
         offset_[layer - layers_.first];
}

float* StatePool::InputsOf(std::size_t row, std::uint32_t layer) {
  const std::size_t rows = before_[layer - layers_.first] * input_rows_ + row;
  return reinterpret_cast<float*>(buffer_.data()) + places_ * place_floats_ + rows * input_floats_;
}

void StatePool::Clear(std::uint32_t place) {
  std::fill_n(LayerOf(place, layers_.first), place_floats_, 0.0f);
}

void StatePool::Copy(std::uint32_t from, std::uint32_t to) {
  std::copy_n(LayerOf(from, layers_.first), place_floats_, LayerOf(to, layers_.first));
}

std::optional<SavedState> StatePool::NewSaved(std::size_t length) {
  if (free_.empty()) return std::nullopt;
  return SavedState(*this, TakePlace(), length);
}

std::span<std::byte> StatePool::BytesOf(const SavedState& state) {
  TROUPE_CHECK(state.pool_ == this);
  return std::as_writable_bytes(std::span(LayerOf(state.place_, layers_.first), place_floats_));
}

bool StatePool::Same(const SavedState& a, const SavedState& b) {
  TROUPE_CHECK(a.pool_ == this && b.pool_ == this);
  for (std::uint32_t layer = layers_.first; layer < layers_.end; ++layer) {
    const std::size_t next =
        layer + 1 < layers_.end ? offset_[layer + 1 - layers_.first] : place_floats_;
    if (next == offset_[layer - layers_.first]) continue;  // it has keys and values instead
    if (std::memcmp(LayerOf(a.place_, layer), LayerOf(b.place_, layer),
                    layer_floats_ * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

SavedState::SavedState(SavedState&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), place_(other.place_), length_(other.length_) {}

SavedState& SavedState::operator=(SavedState&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(place_, other.place_);
  std::swap(length_, other.length_);
  return *this;
}

SavedState::~SavedState() {
  if (pool_ != nullptr) pool_->GiveBack(place_);
}

Result<SequenceState> SequenceState::Create(StatePool& pool) {
  if (!pool.HasFree(kPlaces)) {
    return Error(Code::kResourceExhausted,
                 "as many sequences have a state as were planned for, and none is free");
  }
  return SequenceState(pool);
}

SequenceState::SequenceState(StatePool& pool)
    : pool_(&pool), now_(pool.TakePlace()), other_(pool.TakePlace()) {
  pool.Clear(now_);
}

SequenceState::SequenceState(SequenceState&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      now_(other.now_),
      other_(other.other_),
      length_(other.length_),
      before_(other.before_),
      saved_(std::exchange(other.saved_, std::nullopt)),
      keeping_(other.keeping_) {}

SequenceState& SequenceState::operator=(SequenceState&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(now_, other.now_);
  std::swap(other_, other.other_);
  std::swap(length_, other.length_);
  std::swap(before_, other.before_);
  std::swap(saved_, other.saved_);
  std::swap(keeping_, other.keeping_);
  return *this;
}

SequenceState::~SequenceState() {
  if (pool_ == nullptr) return;
  pool_->GiveBack(now_);
  pool_->GiveBack(other_);
}

SequenceState::Layer SequenceState::At(std::uint32_t layer) const {
  const float* const before = pool_->LayerOf(now_, layer);
  float* const after = pool_->LayerOf(other_, layer);
  float* const saved = saved_ ? pool_->LayerOf(saved_->place_, layer) : nullptr;
  return {.tail_before = before,
          .matrices_before = before + pool_->tail_floats_,
          .tail_after = after,
          .matrices_after = after + pool_->tail_floats_,
          .tail_saved = saved,
          .matrices_saved = saved == nullptr ? nullptr : saved + pool_->tail_floats_,
          .save_after = saved_ ? saved_->length() - length_ : 0,
          .inputs = keeping_.inputs > 0 ? pool_->InputsOf(keeping_.first_input, layer) : nullptr,
          .input_stride = pool_->input_floats_};
}

void SequenceState::Advance(std::size_t tokens) {
  std::swap(now_, other_);
  before_ = length_;
  length_ += tokens;
}

void SequenceState::Begin(const StateKeeping& keeping) {
  TROUPE_CHECK(keeping.first_input + keeping.inputs <= pool_->input_rows_);
  before_.reset();
  saved_.reset();
  keeping_ = keeping;
  if (keeping.save_after == 0 || !pool_->HasFree(1)) return;
  saved_.emplace(SavedState(*pool_, pool_->TakePlace(), length_ + keeping.save_after));
}

std::optional<std::size_t> SequenceState::ReplaysFrom() const {
  return keeping_.inputs > 0 ? before_ : std::nullopt;
}

std::optional<SavedState> SequenceState::TakeSaved() { return std::exchange(saved_, std::nullopt); }

SavedState SequenceState::Leave() && {
  pool_->GiveBack(other_);
  return SavedState(*std::exchange(pool_, nullptr), now_, length_);
}

void SequenceState::Restore(const SavedState& saved) {
  TROUPE_CHECK(saved.pool_ == pool_);
  pool_->Copy(saved.place_, now_);
  length_ = saved.length_;
  before_.reset();
}

std::size_t SequenceState::RollBack(std::size_t length) {
  if (length >= length_) return length_;
  if (before_ && *before_ <= length) {
    std::swap(now_, other_);
    length_ = *before_;
  } else {
    pool_->Clear(now_);
    length_ = 0;
  }
  before_.reset();
  return length_;
}

}  // namespace troupe
