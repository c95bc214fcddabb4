// What a trace holds, counted in one reading: what `troupe trace info` shows.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/status.h"
#include "trace/trace_reader.h"

namespace troupe {

struct TraceSummary {
  std::uint64_t tokens = 0, prefill_tokens = 0, decode_tokens = 0;
  std::uint64_t sequences = 0;
  std::uint32_t first_sequence = ~0u,
                last_sequence =
                    0;  // the least number and the greatest  // counted where their number changes
  std::uint64_t passes = 0, chunks = 0;
  std::uint64_t longest_pass = 0;  // in tokens
  std::map<std::string, std::uint64_t> tokens_by_domain;
  TraceDamage damage;
};

// Reads the rest of the trace.
Result<TraceSummary> Summarize(TraceReader& reader);

}  // namespace troupe
