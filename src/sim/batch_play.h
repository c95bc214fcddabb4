// One server that batches, on a virtual clock: requests that come at recorded times with recorded
// lengths, through one engine (engine_play.h). Pure: same input, same result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/engine_play.h"
#include "sim/result.h"
#include "sim/workload.h"

namespace troupe {

struct PlayedRequest {
  RecordedRequest recorded;           // at least one token in and out
  std::optional<double> timeout_s{};  // after its arrival; then it is dropped
};

struct BatchPlayResult {
  double seconds = 0;  // from the first arrival to the last answer's end
  std::uint64_t passes = 0, rows = 0;
  std::uint64_t prompt_tokens = 0, generated = 0;  // those of dropped requests, too
  std::uint64_t answered = 0, dropped = 0;
  TimeHistogram first;  // from a request's arrival to its first token
  TimeHistogram gap;    // between two tokens of an answer
  TimeHistogram pass;
  // The most passes in a row in which a request that had been let in got no row.
  std::uint32_t most_passed_over = 0;

  double TokensPerSecond() const {
    return seconds > 0 ? static_cast<double>(generated) / seconds : 0;
  }
};

// `requests` come in order of their times.
BatchPlayResult PlayBatches(std::span<const PlayedRequest> requests, const EngineSetup& setup);

}  // namespace troupe
