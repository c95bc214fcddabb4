// What a sequence carries besides keys and values, where layers have a recurrence: the matrices of
// delta nets or of Mamba-2, and the last inputs of convolutions. It is as large for one token as
// for a million, and cannot be cut like keys and values: it stands where the last token left it.
//
// Rolling back. A pass leaves the state from which it began as it was and writes another one beside
// it, so a state has two places. Until Advance nothing has happened: that is how a pass that fails
// leaves its sequence. After Advance both are there, and RollBack goes back to where the last pass
// began at no cost. To anywhere else it goes back to the beginning of the text: it tells where it
// stands now, and whoever asked feeds the tokens from there to where it wanted to be again, alone
// or at the head of what it feeds next. That gives the same bytes, since every row has the bytes
// that it would get alone. Guessed tokens, of which the first m are right, need no second pass: a
// pass keeps what its rows put into each recurrence (Keeping), and state_replay.h has the first m
// of them do so again.
// Threads: one at a time; while a pass runs, its threads may use the layers of its sequences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "io/aligned_buffer.h"
#include "model/config.h"
#include "model/layer_range.h"

namespace troupe {

class SavedState;
class SequenceState;

struct StatePoolShape {
  std::uint32_t sequences = 1;  // that have a state at once
  std::uint32_t saved = 0;      // states that can be kept beside theirs, at least
  std::uint32_t inputs = 0;     // rows of a pass whose inputs can be kept
};

// What a pass leaves besides the state at its end.
struct StateKeeping {
  // Saves the state behind this many of the pass's rows, if there is a place for it; 0: does not.
  std::size_t save_after = 0;
  // Keeps what this many rows, the sequence's all, put into the state: in the pool's places for
  // such inputs, from `first_input` on.
  std::size_t inputs = 0;
  std::size_t first_input = 0;
};

// Memory for the states of some sequences, all taken at once.
class StatePool {
 public:
  static Bytes BytesFor(const ModelConfig& config, LayerRange layers, const StatePoolShape& shape);
  static Result<std::unique_ptr<StatePool>> Create(const ModelConfig& config, LayerRange layers,
                                                   const StatePoolShape& shape);

  // Asked, with the places that are missing, where a state is to begin or to be saved and too few
  // are free: who keeps saved ones may let them go. Empty: nobody does.
  using GiveUp = std::function<void(std::size_t places)>;
  void OnShortage(GiveUp give_up) { give_up_ = std::move(give_up); }
  // Has whoever keeps saved ones let all of them go: what is in them is not to be trusted.
  void GiveUpSaved();

  // Room for a state that is filled in from elsewhere; none: all places are taken.
  std::optional<SavedState> NewSaved(std::size_t length);
  // All layers of a state, one after the other; what fills up a layer's last line means nothing.
  std::span<std::byte> BytesOf(const SavedState& state);
  bool Same(const SavedState& a, const SavedState& b);  // bit for bit

  std::size_t free_places() const { return free_.size(); }  // a sequence takes two
  std::size_t state_bytes() const { return place_floats_ * sizeof(float); }
  std::size_t input_rows() const { return input_rows_; }  // that can be kept of a pass
  Bytes bytes() const { return buffer_.size(); }

 private:
  friend class SavedState;
  friend class SequenceState;

  StatePool(const ModelConfig& config, LayerRange layers, const StatePoolShape& shape,
            AlignedBuffer buffer);
  bool HasFree(std::size_t places);
  std::uint32_t TakePlace();
  void GiveBack(std::uint32_t place) { free_.push_back(place); }
  float* LayerOf(std::uint32_t place, std::uint32_t layer);
  float* InputsOf(std::size_t row, std::uint32_t layer);
  void Clear(std::uint32_t place);
  void Copy(std::uint32_t from, std::uint32_t to);

  std::vector<std::size_t> offset_;  // floats before a layer's in a place, by layer
  std::vector<std::size_t> before_;  // layers with a state before it
  LayerRange layers_;
  std::size_t tail_floats_, layer_floats_, place_floats_;  // a layer's without its last line's rest
  std::size_t places_, input_rows_, input_floats_;         // of a row in a layer
  AlignedBuffer buffer_;
  std::vector<std::uint32_t> free_;
  GiveUp give_up_;
};

// A state as it was after some tokens of a text, for sequences that begin with the same ones. The
// pool must outlive it.
class SavedState {
 public:
  SavedState(SavedState&& other) noexcept;
  SavedState& operator=(SavedState&& other) noexcept;
  ~SavedState();

  std::size_t length() const { return length_; }

 private:
  friend class SequenceState;
  friend class StatePool;
  SavedState(StatePool& pool, std::uint32_t place, std::size_t length)
      : pool_(&pool), place_(place), length_(length) {}

  StatePool* pool_;  // null after a move
  std::uint32_t place_;
  std::size_t length_;
};

// One sequence's state. The pool must outlive it.
class SequenceState {
 public:
  // At the beginning of a text. kResourceExhausted if as many have theirs as were planned for.
  static Result<SequenceState> Create(StatePool& pool);
  SequenceState(SequenceState&& other) noexcept;
  SequenceState& operator=(SequenceState&& other) noexcept;
  ~SequenceState();

  std::size_t length() const { return length_; }  // tokens it has seen

  // A pass that may write begins.
  void Begin(const StateKeeping& keeping);
  struct Layer {
    const float *tail_before, *matrices_before;  // as the tokens so far have left it
    float *tail_after, *matrices_after;          // as the pass under way leaves it
    float *tail_saved, *matrices_saved;          // after its first save_after tokens
    std::size_t save_after;                      // 0: nobody wants that
    float* inputs;             // of the rows of the pass under way or the last one; null: not kept
    std::size_t input_stride;  // what a row of them is: the blocks that write and read it say
  };
  // A layer's part; any thread.
  Layer At(std::uint32_t layer) const;

  // What the pass wrote is the state now, `tokens` further.
  void Advance(std::size_t tokens);
  // To the latest place up to `length` that it can go back to, which it gives.
  std::size_t RollBack(std::size_t length);
  // Tokens up to where the last pass began, if its rows' inputs are kept and it can go back there.
  std::optional<std::size_t> ReplaysFrom() const;
  void ForgetInputs() { keeping_ = {}; }

  // What was wanted of a pass that has ended; none: there was no place.
  std::optional<SavedState> TakeSaved();
  // It has ended: what it was, without a copy.
  SavedState Leave() &&;
  // Goes on from there: a copy.
  void Restore(const SavedState& saved);

 private:
  explicit SequenceState(StatePool& pool);

  StatePool* pool_;  // null after a move
  std::uint32_t now_, other_;
  std::size_t length_ = 0;
  std::optional<std::size_t> before_;  // where the other place stands, if anywhere
  std::optional<SavedState> saved_;    // of the pass under way or the last one
  StateKeeping keeping_;               // the same
};

}  // namespace troupe
