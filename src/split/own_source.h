// This machine's engine as a place that chooses tokens.
#pragma once

#include <troupe/model.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "split/token_source.h"

namespace troupe {

class OwnSource final : public TokenSource {
 public:
  // The model must outlive it, and be closed before what `post` leads to is gone.
  OwnSource(Model& model, PostToLoop post) : model_(model), post_(std::move(post)) {}

  Stop Start(const RunAsk& ask, RunEvents events) override;

  // Tokens of prompts that runs have yet to read.
  std::size_t tokens_to_read() const { return *to_read_; }

 private:
  Model& model_;
  const PostToLoop post_;
  const std::shared_ptr<std::size_t> to_read_ = std::make_shared<std::size_t>(0);
};

}  // namespace troupe
