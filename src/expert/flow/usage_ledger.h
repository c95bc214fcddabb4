// Who pays for what experts cost: the sums of a source divided among requests whose rows share its
// passes. What is a row's own, a hit, a miss or an inexact slot, goes to its request. The rest of a
// pass, reads, bytes, time and prefetches, is divided by the rows' misses, or by rows where nothing
// was missed. Shares are whole numbers (times are nanoseconds) by the method of the largest
// remainder, so that they always add up to the whole. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "expert/flow/expert_usage.h"
#include "expert/pass_facts.h"

namespace troupe {

// What was a group's own in a pass, in (row, slot) pairs.
struct GroupUse {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t low = 0;  // answered by a low copy
  std::uint64_t substituted = 0;
  std::uint64_t dropped = 0;

  bool operator==(const GroupUse&) const = default;
};

// `total` in whole shares as near as can be to the weights' proportions; of equal remainders the
// first come first. With weights that are all zero the first takes everything. Not empty.
std::vector<std::int64_t> Apportion(std::int64_t total, std::span<const std::uint64_t> weights);

class UsageLedger {
 public:
  // Divides what the whole grew by since the last call. `uses` is what was each group's own since
  // then, in the order of the pass's groups.
  void Settle(const PassFacts& pass, const ExpertUsage& whole, std::span<const GroupUse> uses);

  // Without `layers`. Nothing of a request that never had a row.
  ExpertUsage Of(RequestId request) const;
  void Forget(RequestId request);
  // Of all requests that were forgotten.
  ExpertUsage forgotten() const;

 private:
  // Every sum of an ExpertUsage as a whole number.
  using Sums = std::vector<std::int64_t>;
  static Sums SumsOf(const ExpertUsage& usage);
  static ExpertUsage UsageOf(const Sums& sums);
  static void Add(Sums& sums, std::size_t at, std::int64_t more);

  Sums whole_;
  std::map<RequestId, Sums> requests_;
  Sums forgotten_;
};

}  // namespace troupe
