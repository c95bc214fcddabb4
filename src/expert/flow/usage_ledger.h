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
  std::uint64_t peer_bf16 = 0, peer_q8 = 0;

  bool operator==(const GroupUse&) const = default;
};

// `total` in whole shares as near as can be to the weights' proportions; of equal remainders the
// first come first. With weights that are all zero the first takes everything. Not empty.
std::vector<std::int64_t> Apportion(std::int64_t total, std::span<const std::uint64_t> weights);

// Whom a ledger divides to where there is no request.
inline constexpr RequestId kNobody = 0;

class UsageLedger {
 public:
  // What is spent from now on is divided among this pass's groups.
  void OnPassBegins(const PassFacts& pass);
  const PassFacts& pass() const { return pass_; }
  // Whether what the pass has spent was divided.
  bool is_settled() const { return settled_; }

  // Divides what the whole grew by since the last call. `uses` is what was each group's own since
  // then, in the order of the pass's groups.
  void Settle(const ExpertUsage& whole, std::span<const GroupUse> uses);

  // What was divided to the request since it was last taken, without `layers`. Nothing of a request
  // that had no row since then.
  ExpertUsage Take(RequestId request);
  // The same for the last time: if its pass spends more, nobody pays, which is kNobody.
  ExpertUsage End(RequestId request);

 private:
  // Every sum of an ExpertUsage as a whole number.
  using Sums = std::vector<std::int64_t>;
  static Sums SumsOf(const ExpertUsage& usage);
  static ExpertUsage UsageOf(const Sums& sums);
  static void Add(Sums& sums, std::size_t at, std::int64_t more);

  PassFacts pass_;
  bool settled_ = true;
  Sums whole_;
  std::map<RequestId, Sums> requests_;
};

}  // namespace troupe
