// The merges of a vocabulary by the ids of their two parts, for tokenizers that join by rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "text/pair_merge.h"
#include "text/vocab.h"

namespace troupe {

class MergeRanks {
 public:
  MergeRanks() = default;
  // `ids`: of all tokens that merges name.
  MergeRanks(const Vocab& vocab, const std::unordered_map<std::string_view, TokenId>& ids);

  std::optional<Merge> Find(TokenId left, TokenId right) const;

 private:
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace troupe
