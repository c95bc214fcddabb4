// The runs of this machine's engine, in the order in which they came, which is that in which their
// prompts are read: what each still has before it. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "split/token_source.h"

namespace troupe {

class ReadingLine {
 public:
  using Place = std::list<std::shared_ptr<RunLeft>>::iterator;

  // At its end. Writes what is left before that run as it learns more; null: nobody asks.
  Place Add(std::shared_ptr<RunLeft> left, std::size_t tokens, Nanos now) {
    if (left == nullptr) left = std::make_shared<RunLeft>();
    left->own_tokens = tokens;
    left->runs = runs_.size();
    left->tokens = to_read_;
    left->since = now;
    to_read_ += tokens;
    return runs_.insert(runs_.end(), std::move(left));
  }

  // The run has `tokens` left to read, if that is fewer than before. While others are read before
  // it, the rest was found in the prefix cache.
  void Read(Place run, std::size_t tokens, Nanos now) {
    const std::size_t read = (*run)->own_tokens - std::min(tokens, (*run)->own_tokens);
    (*run)->own_tokens -= read;
    (*run)->begun = (*run)->begun || (*run)->tokens == 0 || tokens == 0;
    (*run)->since = now;
    to_read_ -= read;
    for (auto later = std::next(run); later != runs_.end(); ++later) {
      (*later)->tokens -= read;
      (*later)->since = now;
    }
  }

  // The run has `tokens` left to read, if that is more than it came with: the prefix cache had less
  // of it than was believed.
  void Grow(Place run, std::size_t tokens, Nanos now) {
    const std::size_t more = tokens - std::min(tokens, (*run)->own_tokens);
    (*run)->own_tokens += more;
    to_read_ += more;
    for (auto later = std::next(run); later != runs_.end(); ++later) {
      (*later)->tokens += more;
      (*later)->since = now;
    }
  }

  void Remove(Place run, Nanos now) {
    Read(run, 0, now);
    for (auto later = std::next(run); later != runs_.end(); ++later) --(*later)->runs;
    runs_.erase(run);
  }

  // Of all runs.
  std::size_t to_read() const { return to_read_; }
  std::size_t runs() const { return runs_.size(); }

 private:
  std::list<std::shared_ptr<RunLeft>> runs_;
  std::size_t to_read_ = 0;
};

}  // namespace troupe
