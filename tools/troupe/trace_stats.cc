#include "troupe/trace_stats.h"

#include <cmath>

namespace troupe {
void PrintStatistics(const std::string& trace, const TraceStatistics& s) {
  double reused = 0;
  for (std::size_t l = 0; l < Layers(s); ++l) {
    reused += s.Reuse(l, 0) / static_cast<double>(Layers(s));
  }
  fmt::print("{:.1f} % of a token's experts are used by the next token again, by chance {:.1f} %\n",
             100 * reused, 100 * Chance(s));
  fmt::print("{}: {}, {} tokens\n\n", trace, s.header().model, s.tokens());
  fmt::print("{:>6} {:>9} {:>9}   {:<25} {:>13}\n", "", "entropy,", "hottest", "used again by",
             "experts used");
  fmt::print("{:>6} {:>9} {:>9} {:>11} {:>11} {:>15}\n", "layer", "bits", "expert", "next token",
             "32nd token", "in 16 tokens");
  for (std::size_t l = 0; l < Layers(s); ++l) {
    fmt::print("{:>6} {:>9.2f} {:>8.1f}x {:>9.1f} % {:>9.1f} % {:>15.1f}\n",
               s.header().moe_layers[l], s.EntropyBits(l), s.HottestOverUniform(l),
               100 * s.Reuse(l, 0), 100 * s.Reuse(l, TraceStatistics::kDistances.size() - 1),
               s.WorkingSet(l, 4));
  }
  fmt::print("{:>6} {:>9.2f} {:>8.1f}x {:>9.1f} % {:>9.1f} % {:>15.1f}\n", "chance",
             std::log2(s.header().experts), 1.0, 100 * Chance(s), 100 * Chance(s),
             s.header().experts * (1 - std::pow(1 - Chance(s), 16)));
}

Json StatisticsRecord(const std::string& trace, const TraceStatistics& s) {
  Json record = {{"trace", trace}, {"model", s.header().model}, {"tokens", s.tokens()}};
  record["reuse_distances"] = TraceStatistics::kDistances;
  record["windows"] = TraceStatistics::kWindows;
  record["layers"] = Json::Array();
  for (std::size_t l = 0; l < Layers(s); ++l) {
    Json layer = {{"layer", s.header().moe_layers[l]},
                  {"entropy_bits", s.EntropyBits(l)},
                  {"hottest_over_uniform", s.HottestOverUniform(l)}};
    for (std::size_t d = 0; d < TraceStatistics::kDistances.size(); ++d) {
      layer["reuse"].push_back(s.Reuse(l, d));
    }
    for (std::size_t w = 0; w < TraceStatistics::kWindows.size(); ++w) {
      layer["working_set"].push_back(s.WorkingSet(l, w));
    }
    for (std::uint32_t e = 0; e < s.header().experts; ++e) layer["uses"].push_back(s.Uses(l, e));
    for (std::uint32_t rank = 0; rank < s.rank_reuse().ranks(); ++rank) {
      layer["reuse_by_rank"].push_back(s.rank_reuse().Reused(l, rank));
    }
    record["layers"].push_back(std::move(layer));
  }
  record["domains"] = s.domains();
  for (const std::string& a : s.domains()) {
    Json row = Json::Array();
    for (const std::string& b : s.domains()) row.push_back(s.DomainDistance(a, b));
    record["domain_divergence"].push_back(std::move(row));
  }
  return record;
}

}  // namespace troupe
