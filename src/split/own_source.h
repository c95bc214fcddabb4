// This machine's engine as a place that chooses tokens.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <functional>
#include <memory>

#include "base/clock.h"
#include "split/token_source.h"

namespace troupe {

class ReadingLine;

class OwnSource final : public TokenSource {
 public:
  // A run has found less in the prefix cache than it was believed to.
  using OnLost = std::function<void()>;
  // Both must outlive it, and the model be closed before what `post` leads to is gone. on_lost is
  // called on the loop's thread; null: nobody asks.
  OwnSource(Model& model, const Clock& clock, PostToLoop post, OnLost on_lost = {});

  Stop Start(const RunAsk& ask, RunEvents events) override;

  // Tokens of prompts that runs have yet to read.
  std::size_t tokens_to_read() const;
  std::size_t runs() const;

 private:
  Model& model_;
  const Clock& clock_;
  const PostToLoop post_;
  const OnLost on_lost_;
  const std::shared_ptr<ReadingLine> line_;
};

}  // namespace troupe
