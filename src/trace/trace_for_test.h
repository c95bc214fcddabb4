// Random traces for tests: choices, scores and passes of any shape.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "trace/trace_block.h"

namespace troupe {

inline TraceHeader TestTraceHeader(bool scored = true, bool all_scores = false) {
  return {.model = "test",
          .layers = 4,
          .moe_layers = {1, 2, 3},
          .experts = 12,
          .top_k = 3,
          .scores = scored ? ScoreKind::kSoftmax : ScoreKind::kNone,
          .all_scores = scored && all_scores};
}

// Scores are multiples of 1/1024, which every type of score holds.
inline TraceBlock RandomBlock(const TraceHeader& header, std::vector<TraceSegment> segments,
                              Rng& rng) {
  TraceBlock block{.domains = {"law", ""}, .segments = std::move(segments)};
  for (const TraceSegment& segment : block.segments) block.tokens += segment.tokens;
  std::vector<std::uint16_t> experts(header.experts);
  std::iota(experts.begin(), experts.end(), std::uint16_t{0});
  const auto score = [&] { return static_cast<float>(rng.Below(1024)) / 1024; };
  for (std::size_t row = 0; row < header.moe_layers.size() * block.tokens; ++row) {
    std::shuffle(experts.begin(), experts.end(), rng);
    block.ids.insert(block.ids.end(), experts.begin(), experts.begin() + header.top_k);
    if (header.scores == ScoreKind::kNone) continue;
    for (std::uint32_t k = 0; k < header.top_k; ++k) block.scores.push_back(score());
    for (std::uint32_t e = 0; header.all_scores && e < header.experts; ++e) {
      block.all_scores.push_back(score());
    }
  }
  return block;
}

}  // namespace troupe
