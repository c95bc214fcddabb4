// This machine's engine as a place that chooses tokens.
#pragma once

#include <troupe/model.h>

#include <utility>

#include "split/token_source.h"

namespace troupe {

class OwnSource final : public TokenSource {
 public:
  // The model must outlive it, and be closed before what `post` leads to is gone.
  OwnSource(Model& model, PostToLoop post) : model_(model), post_(std::move(post)) {}

  Stop Start(const RunAsk& ask, RunEvents events) override;

 private:
  Model& model_;
  const PostToLoop post_;
};

}  // namespace troupe
