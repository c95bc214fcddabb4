#include "trace/trace_summary.h"

#include <algorithm>

namespace troupe {

Result<TraceSummary> Summarize(TraceReader& reader) {
  TraceSummary summary;
  std::optional<std::uint32_t> sequence;
  std::uint64_t pass = 0;
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<TraceBlock> block, reader.Next());
    if (!block) break;
    for (const TraceSegment& segment : block->segments) {
      if (!segment.joins || pass == 0) {
        ++summary.passes;
        pass = 0;
      }
      pass += segment.tokens;
      summary.longest_pass = std::max(summary.longest_pass, pass);
      summary.sequences += sequence == segment.sequence ? 0 : 1;
      sequence = segment.sequence;
      summary.first_sequence = std::min(summary.first_sequence, segment.sequence);
      summary.last_sequence = std::max(summary.last_sequence, segment.sequence);
      (segment.phase == TracePhase::kDecode ? summary.decode_tokens : summary.prefill_tokens) +=
          segment.tokens;
      summary.tokens_by_domain[block->domains[segment.domain]] += segment.tokens;
    }
  }
  summary.tokens = reader.tokens();
  summary.chunks = reader.chunks();
  summary.damage = reader.damage();
  return summary;
}

}  // namespace troupe
