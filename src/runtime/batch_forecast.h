// What an exact request would take that came now, by what the batch has measured and by who is
// before it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/batch_loop.h"

namespace troupe {

// 0: nothing was measured yet, or there is nothing to wait for.
struct BatchForecast {
  double wait_seconds = 0;   // until it has a sequence
  double read_seconds = 0;   // a token of its prompt
  double token_seconds = 0;  // a token of its answer, beside those that are under way

  bool operator==(const BatchForecast&) const = default;
};

// Until a sequence is free for one more, where `before` are under way or wait and each holds one
// for that long.
double WaitSeconds(std::size_t before, std::uint32_t sequences, double request_seconds);

// `sequences` at a time; `prompt_rows`: tokens of its prompt, of which more take less each.
BatchForecast ForecastOf(const BatchCounters& counters, std::uint32_t sequences,
                         std::uint32_t prompt_rows);

}  // namespace troupe
