// For `troupe bench --join`: sequences decode through the batcher, and a request with a long prompt
// joins them. How long a decode waits for its next token meanwhile is what a user would notice.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "runtime/engine.h"
#include "text/vocab.h"

namespace troupe {

inline constexpr std::size_t kJoinedSequences = 8;

struct JoinWork {
  std::size_t prompt = 1;         // tokens of each sequence that decodes
  std::size_t joined_prompt = 1;  // tokens of the request that joins
};

struct JoinTimes {
  std::vector<double> gaps_before;  // seconds between a decode's tokens, nobody else there
  std::vector<double> gaps;         // the same while the prompt is read
  double prompt_seconds = 0;        // from submission to its first token
  double prompt_seconds_alone = 0;  // the same with nothing else under way
};

// Gaps between consecutive times that overlap the span from `from` to `to`, in seconds.
std::vector<double> GapsWithin(std::span<const Nanos> times, Nanos from, Nanos to);

// REQUIRES: the engine holds kJoinedSequences + 1 sequences. kResourceExhausted if the decodes have
// to end before the prompt is read, or if memory is missing for one of them.
Result<JoinTimes> TimeJoin(Engine& engine, TokenIds text, const JoinWork& work);

}  // namespace troupe
