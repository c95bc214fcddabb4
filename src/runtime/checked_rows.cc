#include "runtime/checked_rows.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

void CheckedRows::Begin(std::span<float> buffer, std::size_t vocabulary) {
  TROUPE_CHECK(buffer.size() >= vocabulary);
  buffer_ = buffer;
  vocabulary_ = vocabulary;
  rows_.clear();
  first_of_entry_.clear();
  first_ = count_ = 0;
}

void CheckedRows::AddEntry(std::uint32_t first_row, std::uint32_t count) {
  first_of_entry_.push_back(rows_.size());
  for (std::uint32_t i = 0; i < count; ++i) rows_.push_back(first_row + i);
}

std::span<const float> CheckedRows::Of(std::size_t entry, std::size_t row, const Compute& compute) {
  const std::size_t at = first_of_entry_[entry] + row;
  TROUPE_CHECK(at < rows_.size());
  if (at < first_ || at >= first_ + count_) {
    first_ = at;
    count_ = std::min(buffer_.size() / vocabulary_, rows_.size() - at);
    compute(std::span(rows_).subspan(first_, count_), buffer_.data());
    computed_ += count_;
  }
  return buffer_.subspan((at - first_) * vocabulary_, vocabulary_);
}

}  // namespace troupe
