// What answering the misses of a layer costs, as whoever loads them knows it when they are asked
// for: the port's answer to MissFlow (load_port.h), of which the planner's facts are made
// (miss_plan.h). Values alone.
#pragma once

#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/flow/miss_plan.h"

namespace troupe {

// What a machine was measured to take before a run: the same for all of it, so that what is decided
// by it does not change with the weather. Nothing measured, nothing weighed.
struct MeasuredCosts {
  MediumState medium;
  std::vector<LocalWork> local;  // by layer; empty: not measured
};

struct AnswerCosts {
  Bytes full;  // of an expert, to read
  Bytes low;   // of its low copy; none: there are no such copies
  MediumState medium;
  LocalWork local;  // without what the layer's residents take
  std::span<const Place> places;
  // By expert of the layer, which of the places could compute it; empty: each of them any.
  std::span<const std::span<const std::uint32_t>> holders;
};

}  // namespace troupe
