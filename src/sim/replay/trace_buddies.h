// Buddy lists from a trace: which experts its tokens choose together. Whoever replays with them
// plays other tokens than these.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "expert/substitution/buddy_lists.h"
#include "trace/trace_reader.h"

namespace troupe {

struct TraceBuddyOptions {
  BuddyOptions lists;
  // A sequence's first tokens count less: the very first a quarter, rising to one.
  std::uint32_t warm_up = 16;
  double warm_up_least = 0.25;
};

// From the next `tokens` tokens of the reader, or all that it has left. Fails if there are none.
Result<std::shared_ptr<const BuddyLists>> LearnBuddies(TraceReader& reader, std::uint64_t tokens,
                                                       const TraceBuddyOptions& options = {});

}  // namespace troupe
