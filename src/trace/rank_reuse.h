// How likely an expert is chosen by one of the next few tokens, by how high the router scored it:
// whether scores, also of experts that were not chosen, say what a cache should keep.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/trace_block.h"
#include "trace/trace_header.h"

namespace troupe {

class RankReuse {
 public:
  static constexpr std::size_t kNextTokens = 3;

  explicit RankReuse(const TraceHeader& header);

  // Ranks that are known: of all experts if the trace has their scores, or else of the chosen.
  std::uint32_t ranks() const { return ranks_; }
  // Of experts that were scored `rank`-th (the best is 0), the share that one of the next tokens
  // chose.
  double Reused(std::size_t moe_layer, std::uint32_t rank) const;

  struct Token {
    std::vector<std::uint16_t> ranked;  // experts, best first
    std::vector<std::uint16_t> chosen;
  };
  // A sequence's last tokens in a layer, latest first: empty where it begins.
  using Recent = std::deque<Token>;
  void AddToken(const TraceBlock& block, std::uint32_t token, std::size_t moe_layer,
                Recent& recent);

 private:
  void Rank(const TraceBlock& block, std::uint32_t token, std::size_t moe_layer, Token& to) const;

  const TraceHeader header_;
  const std::uint32_t ranks_;
  std::vector<std::uint64_t> reused_;  // [layer][rank]
  std::vector<std::uint64_t> seen_;    // [layer]
  std::vector<bool> chosen_;           // [expert], while a token is added
};

}  // namespace troupe
