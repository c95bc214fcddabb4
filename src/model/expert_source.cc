#include "model/expert_source.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr std::size_t kSums = 23;
static_assert(sizeof(ExpertUsage) == kSums * sizeof(std::uint64_t) + sizeof(std::vector<LayerHits>),
              "a sum is not named in ForEachSum");

// Every sum of one beside the other's.
template <typename Change>
void ForEachSum(ExpertUsage& usage, const ExpertUsage& other, Change change) {
  const auto each = [&](auto... sums) {
    static_assert(sizeof...(sums) == kSums);
    (change(usage.*sums, other.*sums), ...);
  };
  using U = ExpertUsage;
  each(&U::hits, &U::misses, &U::use_hits, &U::use_misses, &U::reads, &U::bytes_read,
       &U::reading_seconds, &U::stall_seconds, &U::low_copies, &U::low_assignments, &U::substituted,
       &U::dropped, &U::deciding_seconds, &U::prefetches, &U::prefetch_useful, &U::prefetch_late,
       &U::prefetch_cancelled, &U::prefetch_wasted, &U::prefetch_waiting, &U::asks_after_guess,
       &U::guessed, &U::expected, &U::left_out);
  usage.layers.resize(std::max(usage.layers.size(), other.layers.size()));
  for (std::size_t i = 0; i < other.layers.size(); ++i) {
    change(usage.layers[i].hits, other.layers[i].hits);
    change(usage.layers[i].asks, other.layers[i].asks);
  }
}

}  // namespace

ExpertUsage ExpertUsage::Since(const ExpertUsage& before) const {
  ExpertUsage since = *this;
  ForEachSum(since, before, [](auto& sum, const auto& less) { sum -= less; });
  return since;
}

ExpertUsage& ExpertUsage::operator+=(const ExpertUsage& part) {
  ForEachSum(*this, part, [](auto& sum, const auto& more) { sum += more; });
  return *this;
}

}  // namespace troupe
