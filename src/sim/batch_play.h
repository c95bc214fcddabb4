// One server that batches, on a virtual clock: requests that come at recorded times with recorded
// lengths go through the engine's own policy of passes (expert/flow/batch_policy.h), a linear model
// says how long each pass takes, and the engine's own meter (row_speed.h) learns from that what the
// policy is told. Requests come in by order of arrival, as in runtime/batch_loop.h. Leaves out
// memory, the prefix cache and what an answer says. Pure: same input, same result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "expert/flow/batch_policy.h"
#include "sim/result.h"
#include "sim/workload.h"

namespace troupe {

// A pass costs a time of its own, one for each of its rows, and one for each expert that some row
// needs. Rows choose experts evenly, so there are layers * experts * (1 - (1 - top_k /
// experts)^rows).
struct PassCosts {
  double pass_seconds = 0, row_seconds = 0, expert_seconds = 0;
  std::uint32_t layers = 1, experts = 1, top_k = 1;  // of a layer

  double Seconds(std::uint32_t rows) const;
};

struct BatchPlaySetup {
  PassCosts costs;
  std::uint32_t sequences = 1;  // that run at the same time; the others wait
  BatchLimits limits;
};

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
BatchPlayResult PlayBatches(std::span<const PlayedRequest> requests, const BatchPlaySetup& setup);

}  // namespace troupe
