#include "trace/trace_edit.h"

#include <algorithm>

namespace troupe {
namespace {

// Indices into header.moe_layers of the layers that stay.
std::vector<std::size_t> KeptLayers(const TraceHeader& header, const TraceCut& cut) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < header.moe_layers.size(); ++i) {
    if (cut.layers.empty() ||
        std::ranges::find(cut.layers, header.moe_layers[i]) != cut.layers.end()) {
      kept.push_back(i);
    }
  }
  return kept;
}

template <typename T>
std::vector<T> RowsOfLayers(const std::vector<T>& all, std::size_t a_layer,
                            const std::vector<std::size_t>& layers) {
  std::vector<T> rows;
  if (all.empty()) return rows;
  rows.reserve(layers.size() * a_layer);
  for (const std::size_t layer : layers) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(layer * a_layer);
    rows.insert(rows.end(), first, first + static_cast<std::ptrdiff_t>(a_layer));
  }
  return rows;
}

void KeepLayers(const TraceHeader& header, const std::vector<std::size_t>& layers,
                const TraceCut& cut, TraceBlock& block) {
  const std::size_t choices = std::size_t{block.tokens} * header.top_k;
  block.ids = RowsOfLayers(block.ids, choices, layers);
  block.scores = RowsOfLayers(block.scores, choices, layers);
  block.all_scores =
      RowsOfLayers(block.all_scores, std::size_t{block.tokens} * header.experts, layers);
  if (cut.drop_scores) block.scores.clear();
  if (cut.drop_scores || cut.drop_all_scores) block.all_scores.clear();
}

bool InDomain(const std::string& domain, const std::string& wanted) {
  return wanted.empty() || domain == wanted || domain.starts_with(wanted + "/");
}

// How many tokens of a segment stay. `begins` is the position with which its sequence begins.
std::uint32_t Kept(const TraceBlock& block, const TraceSegment& segment, const TraceCut& cut,
                   std::uint32_t begins) {
  if (segment.sequence < cut.first_sequence || segment.sequence > cut.last_sequence ||
      (cut.phase && segment.phase != *cut.phase) ||
      !InDomain(block.domains[segment.domain], cut.domain)) {
    return 0;
  }
  const std::uint32_t gone = segment.position - std::min(begins, segment.position);
  return gone >= cut.tokens ? 0 : std::min(segment.tokens, cut.tokens - gone);
}

}  // namespace

Result<TraceHeader> CutHeader(const TraceHeader& header, const TraceCut& cut) {
  for (const std::uint32_t layer : cut.layers) {
    if (std::ranges::find(header.moe_layers, layer) == header.moe_layers.end()) {
      return InvalidArgument("layer {} has no experts here; those from {} to {} have", layer,
                             header.moe_layers.front(), header.moe_layers.back());
    }
  }
  TraceHeader made = header;
  made.moe_layers.clear();
  made.expert_bytes.clear();
  for (const std::size_t i : KeptLayers(header, cut)) {
    made.moe_layers.push_back(header.moe_layers[i]);
    if (!header.expert_bytes.empty()) made.expert_bytes.push_back(header.expert_bytes[i]);
  }
  if (cut.drop_scores || cut.drop_all_scores) made.all_scores = false;
  if (cut.drop_scores) {
    made.scores = ScoreKind::kNone;
    made.score_type = ScoreType::kF32;
  } else if (cut.score_type && made.scores != ScoreKind::kNone) {
    made.score_type = *cut.score_type;
  }
  return made;
}

Status CutTrace(TraceReader& reader, const TraceCut& cut, TraceWriter& writer) {
  const TraceHeader& header = reader.header();
  const std::vector<std::size_t> layers = KeptLayers(header, cut);
  std::optional<std::uint32_t> sequence;
  std::uint32_t begins = 0;
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(std::optional<TraceBlock> block, reader.Next());
    if (!block) return OkStatus();
    std::uint32_t at = 0;
    for (const TraceSegment& segment : block->segments) {
      if (sequence != segment.sequence) begins = segment.position;
      sequence = segment.sequence;
      if (const std::uint32_t count = Kept(*block, segment, cut, begins); count > 0) {
        TraceBlock part = Slice(header, *block, at, count);
        KeepLayers(header, layers, cut, part);
        TROUPE_RETURN_IF_ERROR(writer.Append(std::move(part)));
      }
      at += segment.tokens;
    }
  }
}

Result<std::uint32_t> AppendTrace(TraceReader& reader, std::uint32_t first_sequence,
                                  TraceWriter& writer) {
  std::uint32_t next = first_sequence;
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(std::optional<TraceBlock> block, reader.Next());
    if (!block) return next;
    for (TraceSegment& segment : block->segments) {
      if (segment.sequence >= ~0u - first_sequence) {
        return InvalidArgument("{}: sequence {} is too many", reader.name(), segment.sequence);
      }
      segment.sequence += first_sequence;
      next = std::max(next, segment.sequence + 1);
    }
    TROUPE_RETURN_IF_ERROR(writer.Append(std::move(*block)));
  }
}

}  // namespace troupe
