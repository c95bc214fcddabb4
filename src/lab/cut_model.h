// A model that is cut before one of its layers, on one engine: what lies below the cut runs once,
// what lies above it runs for several variants of the rows that cross, side by side in the same
// passes. For measurements of what crosses a cut. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/part_runner.h"

namespace troupe {

class CutModel {
 public:
  // Sequences that an engine for it has to hold: one below the cut, one above for each variant.
  static std::uint32_t SequencesFor(std::size_t variants) {
    return static_cast<std::uint32_t>(1 + variants);
  }
  // What it takes beside the engine.
  static Bytes BytesFor(const ModelConfig& config, std::size_t variants, std::size_t rows);

  // For texts of at most `positions` tokens; none of the engine's sequences may be open. Fails if
  // the layer is no cut, or where the budget left less room than for that many sequences. The
  // engine must outlive it, and runs nothing else meanwhile.
  static Result<CutModel> Create(Engine& engine, std::uint32_t layer, std::size_t variants,
                                 std::size_t positions);

  std::size_t width() const { return engine_->config().width; }
  std::size_t vocabulary() const { return engine_->config().vocabulary; }
  std::size_t variants() const { return above_.size(); }
  std::size_t most_rows() const { return most_rows_; }  // that cross at once

  // A new text begins.
  void Restart();
  // Its next tokens, most_rows() at most: their rows at the cut, good until the next call.
  Result<std::span<const float>> RunBelow(TokenIds tokens);
  // What each variant has in place of those rows. Of no variants: nothing.
  Status RunAbove(std::span<const std::span<const float>> rows);
  // What each variant predicts after row `row` of the last RunAbove: `vocabulary` floats each, one
  // variant after the other. Good until the next call.
  std::span<const float> Logits(std::size_t row);
  // What the first variant's logits of these rows are computed from: a row of `width` each.
  std::vector<float> Outputs() const;

 private:
  struct Sequence {
    SequenceSlots::Slot slot;
    KvSequence cache;
  };
  CutModel(Engine& engine, std::uint32_t layer, std::size_t variants);
  static Result<Sequence> Open(Engine& engine, std::size_t positions);

  Engine* engine_;
  RequestId request_;
  Transformer lower_, upper_;
  std::size_t most_rows_;
  std::vector<Sequence> below_, above_;  // one; one a variant
  std::size_t rows_ = 0;                 // that crossed last
  std::vector<float> crossing_, logits_;
};

}  // namespace troupe
