#include "sim/replay/trace_buddies.h"

#include <algorithm>
#include <vector>

namespace troupe {

Result<std::shared_ptr<const BuddyLists>> LearnBuddies(TraceReader& reader, std::uint64_t tokens,
                                                       const TraceBuddyOptions& options) {
  const TraceHeader& header = reader.header();
  constexpr Bytes kMost = 4_GiB;  // of the tables: no model needs as much, a hostile header may
  if (const Bytes tables = Coactivations::BytesFor(header.grid()); tables > kMost) {
    return Error(Code::kResourceExhausted,
                 "{}: {} of tables for {} layers of {} experts, at most {} allowed", reader.name(),
                 ToString(tables), header.layers, header.experts, ToString(kMost));
  }
  Coactivations together(header.grid());
  std::vector<std::uint32_t> experts(header.top_k);
  std::uint64_t learnt = 0;
  while (learnt < tokens) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<TraceBlock> block, reader.Next());
    if (!block) break;
    std::uint32_t token = 0;
    for (const TraceSegment& segment : block->segments) {
      for (std::uint32_t t = 0; t < segment.tokens && learnt < tokens; ++t, ++token, ++learnt) {
        const double count =
            WarmUpCount(segment.position + t, options.warm_up, options.warm_up_least);
        for (std::size_t l = 0; l < header.moe_layers.size(); ++l) {
          std::ranges::copy(block->Ids(header, l, token), experts.begin());
          together.Add(header.moe_layers[l], experts, block->Scores(header, l, token), count);
        }
      }
    }
  }
  if (learnt == 0) {
    return DataLoss("{}: no tokens to learn buddies from, expected some", reader.name());
  }
  return std::make_shared<const BuddyLists>(MakeBuddyLists(together, options.lists));
}

}  // namespace troupe
