// A whole trace through many caches at once: every combination of policy, predictor and budget that
// is asked for, in one reading of the trace (two if the optimum is among them). Memory does not
// grow with the trace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "expert/cache/echo_settings.h"
#include "expert/substitution/substitution_spec.h"
#include "sim/replay/cache_replay.h"
#include "trace/trace_reader.h"

namespace troupe {

struct ReplaySpec {
  std::string policy = "lru";      // one of EvictionPolicyNames, or "optimum"
  std::string predictor = "none";  // see CheckReplayPredictor
  std::uint32_t slots = 0;
  bool per_layer = true;               // each layer has its share; else all are one pool
  std::uint32_t spare = 0;             // slots in no layer's share
  std::uint32_t shallow = 0;           // layers, from the first on, that are filled first
  double floor = 0;                    // share of an even part that a layer of one pool keeps
  EchoSettings echo = {};              // of the policy of that name
  bool governed = true;                // prefetching
  std::string substitution = "exact";  // as ParseSubstitution reads it
};

struct ReplayOptions {
  std::uint32_t group = 0;  // see TracePasses
  ReplayCosts costs;
  std::uint64_t skip = 0;  // tokens at the trace's beginning that are not played
  // What `scores` begins with, of the trace's shape; null: nothing. Must outlive the replay.
  const ScoreTables* score_tables = nullptr;
  SubstitutionMaterial material;
  // Of a pass, at most, for answers that are not exact; at most kMostRoutedTokens.
  std::uint32_t substitution_tokens = 1;
  // Told now and then, on the caller's thread, how much of the trace's bytes all caches have
  // played.
  std::function<void(double done, std::uint64_t bytes)> progress;
};

struct ReplayOutcome {
  ReplaySpec spec;
  ReplayResult result;
};

// Those that need routes alone, and the oracle.
std::vector<std::string> ReplayPredictorNames();
// One of these names, or "oracle:N", which foresees N layers, or "oracle:unlimited"
// (foreseen_loads.h).
Status CheckReplayPredictor(const std::string& name);

// Whether the trace has what the policy wants to know; the optimum's is in every trace.
bool CanReplay(const TraceHeader& header, const std::string& policy);

// The same of a predictor.
bool CanPredict(const TraceHeader& header, std::string_view predictor);

// What the header's shape makes of a share of all experts: at least one slot.
std::uint32_t SlotsFor(const TraceHeader& header, double share);
CacheShape ShapeFor(const TraceHeader& header, const ReplaySpec& spec);

Result<std::vector<ReplayOutcome>> Replay(TraceReader& reader, const std::vector<ReplaySpec>& specs,
                                          const ReplayOptions& options, ThreadPool& pool);

}  // namespace troupe
