#include "expert/flow/usage_ledger.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "base/check.h"

namespace troupe {
namespace {

constexpr double kNano = 1e-9;

std::uint64_t WeightOf(ShareBy by, const GroupUse& use) {
  switch (by) {
    case ShareBy::kHits:
      return use.hits;
    case ShareBy::kMisses:
      return use.misses;
    case ShareBy::kLowCopies:
      return use.low;
    case ShareBy::kSubstituted:
      return use.substituted;
    case ShareBy::kDropped:
      return use.dropped;
    case ShareBy::kPeerBf16:
      return use.peer_bf16;
    case ShareBy::kPeerInt8:
      return use.peer_q8;
  }
  return 0;
}

std::vector<std::uint64_t> Weights(ShareBy by, const PassFacts& pass,
                                   std::span<const GroupUse> uses) {
  std::vector<std::uint64_t> weights(std::max<std::size_t>(1, pass.groups.size()));
  for (std::size_t g = 0; g < uses.size(); ++g) weights[g] = WeightOf(by, uses[g]);
  if (std::ranges::any_of(weights, [](std::uint64_t weight) { return weight > 0; })) {
    return weights;
  }
  for (std::size_t g = 0; g < pass.groups.size(); ++g) weights[g] = pass.groups[g].rows;
  return weights;
}

}  // namespace

std::vector<std::int64_t> Apportion(std::int64_t total, std::span<const std::uint64_t> weights) {
  const std::uint64_t sum = std::reduce(weights.begin(), weights.end(), std::uint64_t{0});
  std::vector<std::int64_t> shares(weights.size());
  if (sum == 0) {
    shares.front() = total;
    return shares;
  }
  TROUPE_CHECK(sum <= std::uint64_t{1} << 31);  // so that products of what is below it fit
  const std::int64_t sign = total < 0 ? -1 : 1;
  const auto amount = static_cast<std::uint64_t>(total * sign);
  const std::uint64_t whole = amount / sum, rest = amount % sum;
  std::uint64_t left = rest;
  std::vector<std::size_t> order(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t share = whole * weights[i] + rest * weights[i] / sum;
    left -= rest * weights[i] / sum;
    shares[i] = sign * static_cast<std::int64_t>(share);
    order[i] = i;
  }
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::size_t i) { return rest * weights[i] % sum; });
  for (std::uint64_t i = 0; i < left; ++i) shares[order[i]] += sign;
  return shares;
}

UsageLedger::Sums UsageLedger::SumsOf(const ExpertUsage& usage) {
  Sums sums;
  ExpertUsage copy;
  ForEachSum(copy, usage, [&](ShareBy, auto& /*sum*/, const auto& value) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(value)>>) {
      sums.push_back(std::llround(value / kNano));
    } else {
      sums.push_back(static_cast<std::int64_t>(value));
    }
  });
  return sums;
}

ExpertUsage UsageLedger::UsageOf(const Sums& sums) {
  ExpertUsage usage;
  std::size_t at = 0;
  ForEachSum(usage, usage, [&](ShareBy, auto& sum, const auto& /*other*/) {
    const std::int64_t value = at < sums.size() ? sums[at] : 0;
    ++at;
    using Sum = std::remove_cvref_t<decltype(sum)>;
    if constexpr (std::is_floating_point_v<Sum>) {
      sum = static_cast<Sum>(value) * kNano;
    } else {
      sum = static_cast<Sum>(value);
    }
  });
  return usage;
}

void UsageLedger::Add(Sums& sums, std::size_t at, std::int64_t more) {
  if (sums.size() <= at) sums.resize(at + 1);
  sums[at] += more;
}

void UsageLedger::OnPassBegins(const PassFacts& pass) {
  pass_ = pass;
  settled_ = false;
}

void UsageLedger::Settle(const ExpertUsage& whole, std::span<const GroupUse> uses) {
  Sums sums = SumsOf(whole);
  whole_.resize(sums.size());
  std::size_t at = 0;
  ExpertUsage unused;
  ForEachSum(unused, whole, [&](ShareBy by, auto& /*sum*/, const auto& /*value*/) {
    const std::int64_t grown = sums[at] - whole_[at];
    if (grown != 0) {
      const std::vector<std::int64_t> shares = Apportion(grown, Weights(by, pass_, uses));
      for (std::size_t g = 0; g < shares.size(); ++g) {
        const RequestId request = pass_.groups.empty() ? kNobody : pass_.groups[g].request;
        Add(requests_[request], at, shares[g]);
      }
    }
    ++at;
  });
  whole_ = std::move(sums);
  settled_ = true;
}

ExpertUsage UsageLedger::Take(RequestId request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return {};
  ExpertUsage usage = UsageOf(found->second);
  requests_.erase(found);
  return usage;
}

ExpertUsage UsageLedger::End(RequestId request) {
  for (RowGroupFacts& group : pass_.groups) {
    if (group.request == request) group.request = kNobody;
  }
  return Take(request);
}

}  // namespace troupe
