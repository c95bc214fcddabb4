// One miss from the ask to the answer, for --explain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "expert/expert_id.h"
#include "expert/flow/miss_plan.h"
#include "expert/prefetch/miss_foresight.h"

namespace troupe {

struct MissEvent {
  ExpertId id;
  std::uint32_t tokens = 0;  // that waited
  std::uint32_t slot = 0;
  std::optional<ExpertId> evicted;
  MissAnswer answer = MissAnswer::kLoad;  // as the planner of misses decided, and why
  MissReason why = MissReason::kNotMeasured;
  double expected_seconds = 0;  // from the ask until it is computed; 0: nothing was measured
  MissForesight foresight;      // of a pass of our own
  bool low = false;             // read in its low copy
  bool joined = false;          // its load was under way already
  Bytes bytes;                  // said by who loads
  double load_seconds = 0;      // from the ask to the end of the load, waiting for a slot included
  double waited_seconds = 0;    // of that the time in which nothing else could be computed
};

std::string ToString(const MissEvent& event);

}  // namespace troupe
