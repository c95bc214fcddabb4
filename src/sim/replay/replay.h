// A whole trace through many caches at once: every combination of policy, predictor and budget that
// is asked for, in one reading of the trace (two if the optimum is among them). Memory does not
// grow with the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "sim/replay/cache_replay.h"
#include "trace/trace_reader.h"

namespace troupe {

struct ReplaySpec {
  std::string policy = "lru";      // one of RoutePolicyNames, or "optimum"
  std::string predictor = "none";  // one of ReplayPredictorNames
  std::uint32_t slots = 0;
  bool per_layer = true;      // each layer has its share; else all are one pool
  std::uint32_t spare = 0;    // slots in no layer's share
  std::uint32_t shallow = 0;  // layers, from the first on, that are filled first
  bool governed = true;       // prefetching
};

struct ReplayOptions {
  std::uint32_t group = 0;  // see TracePasses
  ReplayCosts costs;
};

struct ReplayOutcome {
  ReplaySpec spec;
  ReplayResult result;
};

// Those that need routes alone, and the oracle.
std::vector<std::string> ReplayPredictorNames();

// What the header's shape makes of a share of all experts: at least one slot.
std::uint32_t SlotsFor(const TraceHeader& header, double share);
CacheShape ShapeFor(const TraceHeader& header, const ReplaySpec& spec);

Result<std::vector<ReplayOutcome>> Replay(TraceReader& reader, const std::vector<ReplaySpec>& specs,
                                          const ReplayOptions& options, ThreadPool& pool);

}  // namespace troupe
