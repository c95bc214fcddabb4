#include "runtime/stream_tail.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

void StreamTail::Append(std::size_t position, std::span<const float> rows) {
  TROUPE_CHECK(rows.size() % width_ == 0);
  if (position > end_ || position < first_) first_ = position;
  const std::size_t count = rows.size() / width_, skipped = count - std::min(count, kRows);
  end_ = position + count;
  for (std::size_t i = skipped; i < count; ++i) {
    std::ranges::copy(rows.subspan(i * width_, width_),
                      rows_.begin() + static_cast<std::ptrdiff_t>((position + i) % kRows * width_));
  }
  first_ = std::max(first_, end_ - std::min(end_, kRows));
}

}  // namespace troupe
