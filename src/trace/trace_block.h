// Some tokens of a trace: what each of them chose in every layer with experts, and how the passes
// were cut in which the model computed them. A value; the bytes of it are trace_chunk.h's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/trace_header.h"

namespace troupe {

enum class TracePhase : std::uint8_t { kPrefill = 0, kDecode = 1 };

// Adjacent tokens of one sequence that went through the layers together.
struct TraceSegment {
  std::uint32_t sequence = 0;
  std::uint32_t position = 0;  // of its first token in the sequence
  std::uint32_t tokens = 0;
  std::uint16_t domain = 0;  // index into the block's
  TracePhase phase = TracePhase::kPrefill;
  bool joins = false;  // the pass of the segment before, rather than beginning one
  // Its sequence's among those that the run held at once; kept if the header says that there were
  // several.
  std::uint16_t place = 0;

  bool operator==(const TraceSegment&) const = default;
};

struct TraceBlock {
  std::vector<std::string> domains;
  std::vector<TraceSegment> segments;
  std::uint32_t tokens = 0;        // the segments' together
  std::vector<std::uint16_t> ids;  // [MoE layer][token][k], as chosen: best first
  std::vector<float> scores;       // the same, or empty
  std::vector<float> all_scores;   // [MoE layer][token][expert], or empty

  std::span<const std::uint16_t> Ids(const TraceHeader& header, std::size_t moe_layer,
                                     std::size_t token) const {
    return std::span(ids).subspan((moe_layer * tokens + token) * header.top_k, header.top_k);
  }
  std::span<const float> Scores(const TraceHeader& header, std::size_t moe_layer,
                                std::size_t token) const {
    if (scores.empty()) return {};
    return std::span(scores).subspan((moe_layer * tokens + token) * header.top_k, header.top_k);
  }
  std::span<const float> AllScores(const TraceHeader& header, std::size_t moe_layer,
                                   std::size_t token) const {
    if (all_scores.empty()) return {};
    return std::span(all_scores)
        .subspan((moe_layer * tokens + token) * header.experts, header.experts);
  }

  bool operator==(const TraceBlock&) const = default;
};

// Different experts below the header's number for every token, scores that are numbers, segments
// that add up, domains that are there.
Status Validate(const TraceHeader& header, const TraceBlock& block);

// One after the other in one block; of at least one. Domains of the same name become one.
TraceBlock Join(const TraceHeader& header, std::span<const TraceBlock> blocks);
// Tokens [first, first + count). A segment that is cut goes on as one that joins.
TraceBlock Slice(const TraceHeader& header, const TraceBlock& block, std::uint32_t first,
                 std::uint32_t count);

}  // namespace troupe
