// Traces made from traces: parts of one, several in one. Streams: memory does not grow with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/trace_block.h"
#include "trace/trace_header.h"
#include "trace/trace_reader.h"
#include "trace/trace_writer.h"

namespace troupe {

// What is kept: of everything all.
struct TraceCut {
  std::vector<std::uint32_t> layers;  // of the model; empty: all
  std::uint32_t first_sequence = 0, last_sequence = ~0u;
  std::uint32_t tokens = ~0u;  // of each sequence, from its first recorded one on
  std::optional<TracePhase> phase;
  std::string domain;  // this and those below it ("mmlu" keeps "mmlu/law"); empty: all
  std::optional<ScoreType> score_type;
  bool drop_scores = false;
  bool drop_all_scores = false;
};

// Of the trace that a cut makes; fails if it leaves nothing or asks for a layer without experts.
Result<TraceHeader> CutHeader(const TraceHeader& header, const TraceCut& cut);

// Appends what the cut keeps of what the reader has left. The writer has CutHeader's header.
Status CutTrace(TraceReader& reader, const TraceCut& cut, TraceWriter& writer);

// Appends everything that the reader has left, its sequences numbered from `first_sequence` on;
// returns the number after the last one.
Result<std::uint32_t> AppendTrace(TraceReader& reader, std::uint32_t first_sequence,
                                  TraceWriter& writer);

}  // namespace troupe
