#include "trace/trace_block.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

Status ValidateIds(const TraceHeader& header, const TraceBlock& block) {
  std::vector<std::uint64_t> last_seen(header.experts);  // in which choice, counted from 1
  const std::size_t choices = block.ids.size() / header.top_k;
  for (std::size_t choice = 0; choice < choices; ++choice) {
    for (std::uint32_t k = 0; k < header.top_k; ++k) {
      const std::uint16_t id = block.ids[choice * header.top_k + k];
      if (id < header.experts && last_seen[id] != choice + 1) {
        last_seen[id] = choice + 1;
        continue;
      }
      return DataLoss("layer {}, token {}: expert {}, expected different ones below {}",
                      header.moe_layers[choice / block.tokens], choice % block.tokens, id,
                      header.experts);
    }
  }
  return OkStatus();
}

Status ValidateScores(const TraceHeader& header, const TraceBlock& block,
                      const std::vector<float>& scores, std::size_t a_token) {
  const auto bad = std::ranges::find_if(scores, [](float s) { return !std::isfinite(s); });
  if (bad == scores.end()) return OkStatus();
  const std::size_t row = static_cast<std::size_t>(bad - scores.begin()) / a_token;
  return DataLoss("layer {}, token {}: a score that is no number",
                  header.moe_layers[row / block.tokens], row % block.tokens);
}

// Rows [first, first + count) of each layer's `tokens` rows.
template <typename T>
void CopyRows(const std::vector<T>& from, std::size_t layers, std::size_t tokens, std::size_t row,
              std::size_t first, std::size_t count, std::vector<T>& to, std::size_t to_tokens,
              std::size_t to_first) {
  if (from.empty()) return;
  to.resize(layers * to_tokens * row);
  for (std::size_t l = 0; l < layers; ++l) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>((l * tokens + first) * row), count * row,
                to.begin() + static_cast<std::ptrdiff_t>((l * to_tokens + to_first) * row));
  }
}

void CopyTokens(const TraceHeader& header, const TraceBlock& from, std::uint32_t first,
                std::uint32_t count, TraceBlock& to, std::uint32_t to_first) {
  const std::size_t layers = header.moe_layers.size();
  CopyRows(from.ids, layers, from.tokens, header.top_k, first, count, to.ids, to.tokens, to_first);
  CopyRows(from.scores, layers, from.tokens, header.top_k, first, count, to.scores, to.tokens,
           to_first);
  CopyRows(from.all_scores, layers, from.tokens, header.experts, first, count, to.all_scores,
           to.tokens, to_first);
}

}  // namespace

Status Validate(const TraceHeader& header, const TraceBlock& block) {
  std::uint64_t tokens = 0;
  for (const TraceSegment& segment : block.segments) {
    tokens += segment.tokens;
    if (segment.tokens > 0 && segment.domain < block.domains.size() &&
        segment.phase <= TracePhase::kDecode) {
      continue;
    }
    return DataLoss(
        "a segment of {} tokens of domain {} and phase {}, expected some, one below {} "
        "and 0 or 1",
        segment.tokens, segment.domain, static_cast<int>(segment.phase), block.domains.size());
  }
  if (tokens == 0 || tokens != block.tokens) {
    return DataLoss("segments of {} tokens in a block of {}", tokens, block.tokens);
  }
  const std::size_t choices = header.ChoicesOf(block.tokens);
  const bool scored = header.scores != ScoreKind::kNone;
  const std::size_t all =
      header.all_scores ? header.moe_layers.size() * block.tokens * header.experts : 0;
  if (block.ids.size() != choices || block.scores.size() != (scored ? choices : 0) ||
      block.all_scores.size() != all) {
    return DataLoss("{} choices with {} scores and {} of all experts, expected {}, {} and {}",
                    block.ids.size(), block.scores.size(), block.all_scores.size(), choices,
                    scored ? choices : 0, all);
  }
  TROUPE_RETURN_IF_ERROR(ValidateIds(header, block));
  TROUPE_RETURN_IF_ERROR(ValidateScores(header, block, block.scores, header.top_k));
  return ValidateScores(header, block, block.all_scores, header.experts);
}

TraceBlock Join(const TraceHeader& header, std::span<const TraceBlock> blocks) {
  TROUPE_CHECK(!blocks.empty());
  TraceBlock joined;
  for (const TraceBlock& block : blocks) joined.tokens += block.tokens;
  std::uint32_t first = 0;
  for (const TraceBlock& block : blocks) {
    for (TraceSegment segment : block.segments) {
      const std::string& domain = block.domains[segment.domain];
      const auto known = std::ranges::find(joined.domains, domain);
      segment.domain = static_cast<std::uint16_t>(known - joined.domains.begin());
      if (known == joined.domains.end()) joined.domains.push_back(domain);
      joined.segments.push_back(segment);
    }
    CopyTokens(header, block, 0, block.tokens, joined, first);
    first += block.tokens;
  }
  return joined;
}

TraceBlock Slice(const TraceHeader& header, const TraceBlock& block, std::uint32_t first,
                 std::uint32_t count) {
  TROUPE_CHECK(count > 0 && first <= block.tokens && count <= block.tokens - first);
  TraceBlock slice{.domains = block.domains, .tokens = count};
  std::uint32_t at = 0;
  for (const TraceSegment& segment : block.segments) {
    const std::uint32_t begin = std::max(at, first);
    const std::uint32_t end = std::min(at + segment.tokens, first + count);
    if (begin < end) {
      TraceSegment part = segment;
      part.position += begin - at;
      part.tokens = end - begin;
      part.joins |= begin > at;
      slice.segments.push_back(part);
    }
    at += segment.tokens;
  }
  CopyTokens(header, block, first, count, slice, 0);
  return slice;
}

}  // namespace troupe
