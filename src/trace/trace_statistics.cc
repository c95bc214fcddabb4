#include "trace/trace_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

namespace troupe {
namespace {

std::uint32_t Bits(const std::vector<std::uint64_t>& words) {
  std::uint32_t bits = 0;
  for (const std::uint64_t word : words) bits += static_cast<std::uint32_t>(std::popcount(word));
  return bits;
}

double Ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

Bytes TraceStatistics::BytesFor(const TraceHeader& header) {
  const std::uint64_t rows = header.moe_layers.size() * std::uint64_t{header.experts};
  // Sets of experts and ranks of the tokens before, of every sequence under way.
  const std::uint64_t words = (header.experts + 63) / 64;
  const std::uint64_t running =
      header.moe_layers.size() *
      ((kDistances.back() + kWindows.size()) * (words * sizeof(std::uint64_t) + 64) +
       (RankReuse::kNextTokens + 1) * (header.experts + header.top_k) * sizeof(std::uint16_t));
  return Bytes(rows * header.experts * sizeof(std::uint32_t) +
               rows * (kMostDomains + 2) * sizeof(std::uint64_t) +
               std::max(header.sequences, 1u) * running);
}

TraceStatistics::TraceStatistics(const TraceHeader& header)
    : header_(header),
      words_((header.experts + 63) / 64),
      uses_(header.moe_layers.size() * header.experts),
      together_(uses_.size() * header.experts),
      shared_(header.moe_layers.size()),
      compared_(header.moe_layers.size()),
      distinct_(header.moe_layers.size()),
      windows_(header.moe_layers.size()),
      rank_reuse_(header),
      running_(std::max(header.sequences, 1u)) {}

TraceStatistics::Running& TraceStatistics::RunningOf(const TraceSegment& segment) {
  Running& running = running_[segment.place < running_.size() ? segment.place : 0];
  if (!running.layers.empty() && running.sequence == segment.sequence) return running;
  running = {.sequence = segment.sequence,
             .layers = std::vector<Running::Layer>(header_.moe_layers.size())};
  for (Running::Layer& layer : running.layers) layer.windows.fill(Words(words_));
  return running;
}

Status TraceStatistics::Read(TraceReader& reader, bool by_part) {
  while (true) {
    TROUPE_ASSIGN_OR_RETURN(const std::optional<TraceBlock> block, reader.Next());
    if (!block) return OkStatus();
    if (reader.after_gap()) std::ranges::fill(running_, Running());
    std::uint32_t token = 0;
    for (const TraceSegment& segment : block->segments) {
      Running& running = RunningOf(segment);
      std::string domain = block->domains[segment.domain];
      if (by_part) domain = domain.substr(0, domain.find('/'));
      if (!domain_uses_.contains(domain) && domain_uses_.size() >= kMostDomains) {
        domain = "(others)";
      }
      std::vector<std::uint64_t>& uses = domain_uses_[domain];
      uses.resize(uses_.size());
      for (std::uint32_t t = 0; t < segment.tokens; ++t) {
        AddToken(*block, token++, running, uses);
      }
    }
  }
}

void TraceStatistics::AddToken(const TraceBlock& block, std::uint32_t token, Running& running,
                               std::vector<std::uint64_t>& domain) {
  ++tokens_;
  ++running.position;
  for (std::size_t l = 0; l < header_.moe_layers.size(); ++l) {
    Words chosen(words_);
    const auto ids = block.Ids(header_, l, token);
    for (const std::uint16_t id : ids) {
      chosen[id / 64] |= std::uint64_t{1} << (id % 64);
      const std::size_t at = l * header_.experts + id;
      ++uses_[at];
      ++domain[at];
      for (const std::uint16_t other : ids) ++together_[at * header_.experts + other];
    }
    std::deque<Words>& recent = running.layers[l].recent;
    for (std::size_t d = 0; d < kDistances.size(); ++d) {
      if (recent.size() < kDistances[d]) break;
      const Words& before = recent[kDistances[d] - 1];
      for (std::size_t w = 0; w < words_; ++w) {
        shared_[l][d] += static_cast<std::uint64_t>(std::popcount(before[w] & chosen[w]));
      }
      compared_[l][d] += header_.top_k;
    }
    rank_reuse_.AddToken(block, token, l, running.layers[l].recent_ranked);
    AddToWindows(l, chosen, running);
    recent.push_front(std::move(chosen));
    if (recent.size() > kDistances.back()) recent.pop_back();
  }
}

void TraceStatistics::AddToWindows(std::size_t l, const Words& chosen, Running& running) {
  for (std::size_t w = 0; w < kWindows.size(); ++w) {
    Words& set = running.layers[l].windows[w];
    for (std::size_t i = 0; i < words_; ++i) set[i] |= chosen[i];
    if (running.position % kWindows[w] != 0) continue;
    distinct_[l][w] += Bits(set);
    ++windows_[l][w];
    std::ranges::fill(set, 0u);
  }
}

double TraceStatistics::EntropyBits(std::size_t l) const {
  const double all = static_cast<double>(tokens_) * header_.top_k;
  double bits = 0;
  for (std::uint32_t e = 0; e < header_.experts; ++e) {
    if (Uses(l, e) == 0) continue;
    const double p = static_cast<double>(Uses(l, e)) / all;
    bits -= p * std::log2(p);
  }
  return bits;
}

double TraceStatistics::HottestOverUniform(std::size_t l) const {
  std::uint64_t most = 0;
  for (std::uint32_t e = 0; e < header_.experts; ++e) most = std::max(most, Uses(l, e));
  return Ratio(most * header_.experts, tokens_ * header_.top_k);
}

double TraceStatistics::Reuse(std::size_t l, std::size_t distance) const {
  return Ratio(shared_[l][distance], compared_[l][distance]);
}

double TraceStatistics::WorkingSet(std::size_t l, std::size_t w) const {
  return Ratio(distinct_[l][w], windows_[l][w]);
}

double TraceStatistics::Together(std::size_t l, std::uint32_t a, std::uint32_t b) const {
  return Ratio(together_[(l * header_.experts + a) * header_.experts + b], Uses(l, a));
}

std::vector<std::string> TraceStatistics::domains() const {
  std::vector<std::string> names;
  for (const auto& [name, uses] : domain_uses_) names.push_back(name);
  return names;
}

double TraceStatistics::DomainShare(const std::string& domain, std::size_t l,
                                    std::uint32_t expert) const {
  const std::vector<std::uint64_t>& uses = domain_uses_.at(domain);
  const auto first = uses.begin() + static_cast<std::ptrdiff_t>(l * header_.experts);
  const auto end = first + static_cast<std::ptrdiff_t>(header_.experts);
  return Ratio(first[expert], std::accumulate(first, end, std::uint64_t{0}));
}

double TraceStatistics::DomainDistance(const std::string& a, const std::string& b) const {
  const std::vector<std::uint64_t>&x = domain_uses_.at(a), &y = domain_uses_.at(b);
  double sum = 0;
  for (std::size_t l = 0; l < header_.moe_layers.size(); ++l) {
    const std::size_t first = l * header_.experts;
    double all_x = 0, all_y = 0;
    for (std::uint32_t e = 0; e < header_.experts; ++e) {
      all_x += static_cast<double>(x[first + e]);
      all_y += static_cast<double>(y[first + e]);
    }
    for (std::uint32_t e = 0; e < header_.experts; ++e) {
      const double p = static_cast<double>(x[first + e]) / all_x;
      const double q = static_cast<double>(y[first + e]) / all_y;
      const double m = (p + q) / 2;
      if (p > 0) sum += p / 2 * std::log2(p / m);
      if (q > 0) sum += q / 2 * std::log2(q / m);
    }
  }
  return sum / static_cast<double>(header_.moe_layers.size());
}

}  // namespace troupe
