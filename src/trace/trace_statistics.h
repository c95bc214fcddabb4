// What a trace says of its model's routing: how unevenly experts are used, how much of a choice
// comes back at once, how many experts some tokens need, which are chosen together, and how domains
// differ. Counted in one reading; memory depends on the model's shape and on how many
// sequences the run held at once.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/rank_reuse.h"
#include "trace/trace_reader.h"

namespace troupe {

class TraceStatistics {
 public:
  static constexpr std::size_t kMostDomains = 24;  // those that come later are one together
  static constexpr std::array<std::uint32_t, 6> kDistances = {1, 2, 4, 8, 16, 32};
  static constexpr std::array<std::uint32_t, 9> kWindows = {1, 2, 4, 8, 16, 32, 64, 128, 256};

  // What one of such a trace takes, domains left out.
  static Bytes BytesFor(const TraceHeader& header);

  explicit TraceStatistics(const TraceHeader& header);

  // The rest of the trace. `by_part`: domains "a/b" and "a/c" count as "a".
  Status Read(TraceReader& reader, bool by_part = true);

  const TraceHeader& header() const { return header_; }
  std::uint64_t tokens() const { return tokens_; }

  // Of a layer, by its place among those with experts.
  std::uint64_t Uses(std::size_t l, std::uint32_t expert) const {
    return uses_[l * header_.experts + expert];
  }
  double EntropyBits(std::size_t l) const;  // at most log2(experts)
  double HottestOverUniform(std::size_t l) const;
  // Mean share of a token's experts that the token so far before it in its sequence chose, too.
  double Reuse(std::size_t l, std::size_t distance) const;
  // Mean number of different experts in windows of kWindows[w] tokens; 0 if no sequence was so
  // long.
  double WorkingSet(std::size_t l, std::size_t w) const;
  // Of tokens that chose `a`, the share that chose `b`, too.
  double Together(std::size_t l, std::uint32_t a, std::uint32_t b) const;

  // Which experts the next tokens choose, by how high this one scored them.
  const RankReuse& rank_reuse() const { return rank_reuse_; }

  std::vector<std::string> domains() const;
  // Of a domain's choices in a layer, the share that an expert has.
  double DomainShare(const std::string& domain, std::size_t l, std::uint32_t expert) const;
  // Mean over layers of the Jensen-Shannon divergence of two domains' uses: 0 alike, 1 apart.
  double DomainDistance(const std::string& a, const std::string& b) const;

 private:
  using Words = std::vector<std::uint64_t>;  // a bit an expert

  // Of a sequence under way.
  struct Running {
    struct Layer {
      std::deque<Words> recent;      // latest first
      std::array<Words, 9> windows;  // in the making
      RankReuse::Recent recent_ranked;
    };
    std::uint32_t sequence = 0;
    std::uint32_t position = 0;
    std::vector<Layer> layers;
  };

  // That the segment goes on with, or that begins with it.
  Running& RunningOf(const TraceSegment& segment);
  void AddToken(const TraceBlock& block, std::uint32_t token, Running& running,
                std::vector<std::uint64_t>& domain);
  void AddToWindows(std::size_t l, const Words& chosen, Running& running);

  TraceHeader header_;
  std::size_t words_;
  std::uint64_t tokens_ = 0;
  std::vector<std::uint64_t> uses_;      // [layer][expert]
  std::vector<std::uint32_t> together_;  // [layer][expert][expert]
  std::map<std::string, std::vector<std::uint64_t>> domain_uses_;
  std::vector<std::array<std::uint64_t, 6>> shared_, compared_;   // by layer and distance
  std::vector<std::array<std::uint64_t, 9>> distinct_, windows_;  // by layer and window
  RankReuse rank_reuse_;
  std::vector<Running> running_;  // by place; without layers: there is none
};

}  // namespace troupe
