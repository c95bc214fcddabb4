#include "trace/rank_reuse.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace troupe {

RankReuse::RankReuse(const TraceHeader& header)
    : header_(header),
      ranks_(header.all_scores ? header.experts : header.top_k),
      reused_(header.moe_layers.size() * ranks_),
      seen_(header.moe_layers.size()),
      chosen_(header.experts) {}

void RankReuse::Rank(const TraceBlock& block, std::uint32_t token, std::size_t moe_layer,
                     Token& to) const {
  const auto ids = block.Ids(header_, moe_layer, token);
  to.chosen.assign(ids.begin(), ids.end());
  to.ranked = to.chosen;
  if (!header_.all_scores) return;
  const auto scores = block.AllScores(header_, moe_layer, token);
  to.ranked.resize(scores.size());
  std::iota(to.ranked.begin(), to.ranked.end(), std::uint16_t{0});
  std::ranges::stable_sort(to.ranked, std::greater(), [&](auto expert) { return scores[expert]; });
}

void RankReuse::AddToken(const TraceBlock& block, std::uint32_t token, std::size_t moe_layer,
                         Recent& last) {
  Token latest;
  if (last.size() > kNextTokens) {  // its memory, for the latest
    latest = std::move(last.back());
    last.pop_back();
  }
  Rank(block, token, moe_layer, latest);
  last.push_front(std::move(latest));
  if (last.size() <= kNextTokens) return;
  // The oldest has seen all its next tokens.
  chosen_.assign(header_.experts, false);
  for (std::size_t next = 0; next < kNextTokens; ++next) {
    for (const std::uint16_t expert : last[next].chosen) chosen_[expert] = true;
  }
  const Token& oldest = last.back();
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    reused_[moe_layer * ranks_ + rank] += chosen_[oldest.ranked[rank]] ? 1 : 0;
  }
  ++seen_[moe_layer];
}

double RankReuse::Reused(std::size_t moe_layer, std::uint32_t rank) const {
  if (seen_[moe_layer] == 0) return 0;
  return static_cast<double>(reused_[moe_layer * ranks_ + rank]) /
         static_cast<double>(seen_[moe_layer]);
}

}  // namespace troupe
