// Published recordings of routing: X.meta.json and beside it raw arrays of ids and scores, plain or
// compressed with zstd ([layer][token][k], docs/formats/trace.md). Held whole in memory: they are
// small. What they lack beside a trace of ours, such as the cut of the passes, is put as the
// recording says it was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/trace_block.h"
#include "trace/trace_writer.h"

namespace troupe {

struct Recording {
  struct Sequence {
    std::uint32_t tokens = 0;
    std::uint32_t position = 0;  // of its first token
    std::string domain;
  };

  TraceHeader header;
  TracePhase phase = TracePhase::kPrefill;
  std::vector<Sequence> sequences;
  std::uint32_t tokens = 0;
  std::vector<std::uint16_t> ids;  // [MoE layer][token][k]
  std::vector<float> scores;       // the same, or empty
};

// Everything in it was checked.
Result<Recording> ReadRecording(const std::string& meta_path);

// A sequence that was computed at once is one pass, a token that was generated is one.
Status Write(const Recording& recording, TraceWriter& writer);

}  // namespace troupe
