#include "text/merge_ranks.h"

#include <string>

namespace troupe {
namespace {

std::uint64_t PairKey(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

}  // namespace

MergeRanks::MergeRanks(const Vocab& vocab,
                       const std::unordered_map<std::string_view, TokenId>& ids) {
  merges_.reserve(vocab.merges.size());
  std::string whole;
  for (std::size_t rank = 0; rank < vocab.merges.size(); ++rank) {
    const std::string_view merge = vocab.merges[rank];
    const std::size_t blank = merge.find(' ', 1);
    const std::string_view left = merge.substr(0, blank);
    const std::string_view right = merge.substr(blank + 1);
    whole.assign(left).append(right);
    merges_.emplace(PairKey(ids.at(left), ids.at(right)),
                    Merge{static_cast<double>(rank), ids.at(whole)});
  }
}

std::optional<Merge> MergeRanks::Find(TokenId left, TokenId right) const {
  const auto merge = merges_.find(PairKey(left, right));
  return merge == merges_.end() ? std::nullopt : std::optional(merge->second);
}

}  // namespace troupe
