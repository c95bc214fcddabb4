// Ends and their cloud under a load, on a virtual clock: what users would see by a rule of places.
// It asks the live objects for every decision (played_end.h, played_cloud.h); what engines and
// links take is said by the setup. Pure: same input, same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/result.h"
#include "sim/workload.h"
#include "split/flow/place_rule.h"
#include "split/play/played_end.h"

namespace troupe {

struct EndCloudSetup {
  EngineSetup end, cloud;
  std::uint32_t ends = 1;
  double round_trip_seconds = 0;
  std::size_t most_in_cloud = 32;  // answers of an end at a time
  bool one_key = false;            // of all ends: the cloud takes them for one
};

// A request is some prompts that are answered together. It is over when all of them are.
struct EndCloudLoad {
  std::uint32_t prompts = 1;
  std::uint32_t prompt_tokens = 1, answer_tokens = 1;
  double seconds = 20;  // in which requests come
  // In order of their times, with lengths of their own; the ends have one in turn.
  std::vector<RecordedRequest> recorded = {};
  // Without these: requests a second of all ends together, as of a Poisson process; 0: each end has
  // `together` under way at all times.
  double per_second = 0;
  std::uint32_t together = 1;
  std::uint64_t seed = 1;
};

struct EndCloudResult {
  std::uint64_t requests = 0;
  double per_second = 0;  // that were over in the last four fifths of the time
  TimeHistogram latency;  // of a request
  PlayedEndCounts answers;
  double end_busy = 0, cloud_busy = 0;  // parts of the time, of an end on average
};

EndCloudResult PlayEndsAndCloud(const EndCloudSetup& setup, const EndCloudLoad& load,
                                const PlaceRule& rule);

}  // namespace troupe
