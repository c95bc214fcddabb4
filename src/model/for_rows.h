// Work on the rows of a pass that is alike for each row, such as a norm.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/thread_pool.h"

namespace troupe {

// work(row) for all rows, on all threads if there are enough of them to be worth it.
template <typename F>
void ForRows(ThreadPool& pool, std::size_t rows, F&& work) {
  constexpr std::size_t kRowsPerTask = 4;  // a row takes about a microsecond
  if (rows <= kRowsPerTask) {
    for (std::size_t row = 0; row < rows; ++row) work(row);
    return;
  }
  pool.Run((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task, std::size_t) {
    const std::size_t end = std::min(rows, (task + 1) * kRowsPerTask);
    for (std::size_t row = task * kRowsPerTask; row < end; ++row) work(row);
  });
}

}  // namespace troupe
