// A small model that guesses for a larger one, as its drafters see it: sequences of its own, which
// take tokens, give logits, and forget their ends again. The engine behind it is
// runtime/draft_engine.h's; tests have a toy model. How its logits become guesses is
// model_drafter.h's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "text/vocab.h"

namespace troupe {

class DraftSequence {
 public:
  virtual ~DraftSequence() = default;

  virtual std::span<const TokenId> tokens() const = 0;  // that it has read
  virtual std::size_t most_tokens() const = 0;          // that it has room for
  virtual std::size_t most_rows() const = 0;            // that go through its layers together

  // Forgets the tokens from `length` on.
  virtual void Truncate(std::size_t length) = 0;
  // Appends some tokens, most_rows at most; gives the logits after the last, valid until the next
  // call to any sequence of the model.
  virtual Result<std::span<const float>> Feed(std::span<const TokenId> tokens) = 0;
  // A draft has been drawn up: what it read of its own guesses may go.
  virtual void Rest() {}
};

class DraftModel {
 public:
  virtual ~DraftModel() = default;

  // A sequence for a text that begins like this: maybe it has read some of it, maybe something
  // else. Null: as many are in use as there is memory for. The model must outlive it.
  virtual std::unique_ptr<DraftSequence> Begin(std::span<const TokenId> text) = 0;
};

}  // namespace troupe
