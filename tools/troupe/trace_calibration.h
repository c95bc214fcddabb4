// What `troupe calibrate --trace` learns: all that a model's recorded routes tell of it, without
// running it. Which experts are chosen together and how evenly tokens spread their weight, which
// follow which, what keeping first layers whole saves; and of scores of all experts what they tell
// of misses. What corrects the gates' forecasts is not among it, nor what these say of misses: that
// takes the states that gates were given, which no trace has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "expert/forecast/score_tables.h"
#include "gguf/reader.h"
#include "model/config.h"
#include "runtime/buddy_profile.h"
#include "runtime/model_profile.h"
#include "runtime/score_tables_file.h"
#include "trace/trace_reader.h"

namespace troupe {

struct TraceCalibrationOptions {
  BuddyOptions buddies;
  std::uint64_t most_tokens = 32'768;
  bool scores = false;  // tables of them. REQUIRES: the trace has those of all experts
};

// Of the experts that a layer used, how many were told by routes alone; counted before they were
// learned from.
struct RouteForesight {
  double by_paths = 0;     // were among the top-k of those that followed the layer before's
  double by_previous = 0;  // were those of the token before
};

struct TraceCalibration {
  ModelProfile profile;  // without forecasts of gates
  BuddyProfile buddies;
  RouteForesight foresight;
  std::optional<ScoreTables> scores;
};

// Whether the trace was recorded from this model, as far as it says which it is of.
Status CheckTraceOf(const TraceReader& reader, const GgufModel& model, const ModelConfig& config);

// Everything but the fingerprint and the text, which the caller knows. `config` is of the trace's
// model (CheckTraceOf).
Result<TraceCalibration> LearnRoutes(TraceReader& reader, const ModelConfig& config,
                                     const TraceCalibrationOptions& options);

// The profile that lies under the name may be replaced by one that was learned from a trace: what
// was learned from a text corrects forecasts, which a trace's does not.
Status CheckReplaceable(const std::string& path);
// The same of tables of scores: a text's know what gates that are asked early are worth.
Status CheckTablesReplaceable(const std::string& path, const ScoreTablesOf& of);

}  // namespace troupe
