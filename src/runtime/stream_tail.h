// The last rows of the stream that passes have left of one sequence, as the last layer writes them:
// what a head that guesses further tokens goes on from (head_draft.h). The row of a token that was
// forgotten is overwritten by the one that comes in its place. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace troupe {

class StreamTail {
 public:
  static constexpr std::size_t kRows = 256;
  static Bytes BytesFor(std::size_t width) { return Bytes(kRows * width * sizeof(float)); }

  explicit StreamTail(std::size_t width) : width_(width), rows_(kRows * width) {}

  // The rows of the tokens from `position` on. Those before stay as far as they follow each other.
  void Append(std::size_t position, std::span<const float> rows);

  void Clear() { first_ = end_ = 0; }  // another sequence begins

  // Positions whose rows are known: of [first, end), as far as none was forgotten since.
  std::size_t first() const { return first_; }
  std::size_t end() const { return end_; }
  std::span<const float> Row(std::size_t position) const {
    return std::span(rows_).subspan(position % kRows * width_, width_);
  }

 private:
  std::size_t width_;
  std::vector<float> rows_;
  std::size_t first_ = 0, end_ = 0;
};

}  // namespace troupe
