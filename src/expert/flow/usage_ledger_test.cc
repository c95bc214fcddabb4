#include "expert/flow/usage_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(Apportion, GivesWholeSharesByTheLargestRemainder) {
  EXPECT_THAT(Apportion(10, std::vector<std::uint64_t>{1, 1, 1}), ElementsAre(4, 3, 3));
  EXPECT_THAT(Apportion(-10, std::vector<std::uint64_t>{1, 1, 1}), ElementsAre(-4, -3, -3));
  EXPECT_THAT(Apportion(7, std::vector<std::uint64_t>{5, 2, 0}), ElementsAre(5, 2, 0));
  EXPECT_THAT(Apportion(7, std::vector<std::uint64_t>{0, 0}), ElementsAre(7, 0));
}

TEST(Apportion, AddsUpForAnyWeights) {
  Rng rng(TestSeed());
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint64_t> weights(1 + rng.Below(6));
    for (std::uint64_t& weight : weights) weight = rng.Below(3) == 0 ? 0 : rng.Below(1 << 20);
    const auto total = static_cast<std::int64_t>(rng.Below(std::uint64_t{1} << 50)) - (1 << 20);
    const std::vector<std::int64_t> shares = Apportion(total, weights);
    EXPECT_EQ(std::reduce(shares.begin(), shares.end()), total);
  }
}

PassFacts TwoRequests() {
  return {.first_layer = 0,
          .groups = {{.sequence = 0, .request = 5, .rows = 1},
                     {.sequence = 1, .request = 9, .rows = 3}}};
}

TEST(UsageLedger, WhatIsARowsOwnGoesToItsRequestAndTheRestByMisses) {
  UsageLedger ledger;
  ExpertUsage whole;
  whole.use_hits = 4;
  whole.use_misses = 4;
  whole.hits = 3;
  whole.misses = 3;
  whole.dropped = 2;
  whole.bytes_read = 1000;
  whole.stall_seconds = 0.4;
  const std::vector<GroupUse> uses = {{.hits = 4, .misses = 1, .dropped = 2}, {.misses = 3}};
  ledger.OnPassBegins(TwoRequests());
  ledger.Settle(whole, uses);
  const ExpertUsage first = ledger.Take(5), second = ledger.Take(9);
  EXPECT_EQ(first.use_hits, 4u);
  EXPECT_EQ(first.use_misses, 1u);
  EXPECT_EQ(first.dropped, 2u);
  EXPECT_EQ(first.bytes_read, 250u);
  EXPECT_EQ(second.use_hits, 0u);
  EXPECT_EQ(second.dropped, 0u);
  EXPECT_EQ(second.bytes_read, 750u);
  EXPECT_DOUBLE_EQ(second.stall_seconds, 0.3);
  EXPECT_EQ(ledger.Take(7).bytes_read, 0u);
}

TEST(UsageLedger, WithoutMissesTheRestGoesByRows) {
  UsageLedger ledger;
  ExpertUsage whole;
  whole.bytes_read = 400;
  ledger.OnPassBegins(TwoRequests());
  ledger.Settle(whole, std::vector<GroupUse>(2));
  EXPECT_EQ(ledger.Take(5).bytes_read, 100u);
  EXPECT_EQ(ledger.Take(9).bytes_read, 300u);
}

TEST(UsageLedger, WhatWasTakenIsNotTakenAgainAndAfterItsEndARequestPaysNothing) {
  UsageLedger ledger;
  ExpertUsage whole;
  ledger.OnPassBegins(TwoRequests());
  EXPECT_FALSE(ledger.is_settled());
  whole.bytes_read = 400;
  ledger.Settle(whole, std::vector<GroupUse>(2));
  EXPECT_TRUE(ledger.is_settled());
  EXPECT_EQ(ledger.Take(5).bytes_read, 100u);
  EXPECT_EQ(ledger.Take(5).bytes_read, 0u);
  EXPECT_EQ(ledger.End(9).bytes_read, 300u);
  whole.bytes_read = 800;  // a read that ends after the pass
  ledger.Settle(whole, std::vector<GroupUse>(2));
  EXPECT_EQ(ledger.Take(5).bytes_read, 100u);
  EXPECT_EQ(ledger.Take(9).bytes_read, 0u);
  EXPECT_EQ(ledger.Take(kNobody).bytes_read, 300u);
}

// Every sum as a whole number.
std::vector<std::int64_t> SumsOf(ExpertUsage usage) {
  std::vector<std::int64_t> sums;
  ForEachSum(usage, usage, [&](ShareBy, auto& sum, const auto&) {
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(sum)>>) {
      sums.push_back(std::llround(sum * 1e9));
    } else {
      sums.push_back(static_cast<std::int64_t>(sum));
    }
  });
  return sums;
}

TEST(UsageLedger, TheRequestsAddUpToTheWholeWhateverHappens) {
  Rng rng(TestSeed());
  constexpr RequestId kRequests = 6;
  for (int run = 0; run < 50; ++run) {
    UsageLedger ledger;
    ExpertUsage whole;
    std::vector<std::int64_t> sums(SumsOf({}).size());
    for (int step = 0; step < 60; ++step) {
      PassFacts pass;
      std::vector<GroupUse> uses;
      const auto groups = rng.Below(4);
      for (std::uint64_t g = 0; g < groups; ++g) {
        pass.groups.push_back({.request = 1 + rng.Below(kRequests - 1),
                               .rows = static_cast<std::uint32_t>(1 + rng.Below(3))});
        uses.push_back({.hits = rng.Below(9),
                        .misses = rng.Below(4),
                        .low = rng.Below(2),
                        .peer_bf16 = rng.Below(3),
                        .peer_q8 = rng.Below(2)});
        whole.use_hits += uses.back().hits;
        whole.use_misses += uses.back().misses;
        whole.low_assignments += uses.back().low;
        whole.peer_bf16 += uses.back().peer_bf16;
        whole.peer_q8 += uses.back().peer_q8;
      }
      whole.reads += rng.Below(50);
      whole.bytes_read += rng.Below(std::uint64_t{1} << 40);
      whole.stall_seconds += static_cast<double>(rng.Below(1'000'000)) * 1e-9;
      whole.reading_seconds += static_cast<double>(rng.Below(1'000'000)) * 1e-7;
      whole.prefetches += rng.Below(5);
      whole.prefetch_waiting += static_cast<std::int64_t>(rng.Below(5)) - 2;
      ledger.OnPassBegins(pass);
      ledger.Settle(whole, uses);
      if (rng.Below(2) == 0) continue;  // what is not taken stays for later
      for (RequestId request = 0; request < kRequests; ++request) {
        const std::vector<std::int64_t> part =
            SumsOf(rng.Below(8) == 0 ? ledger.End(request) : ledger.Take(request));
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
      }
      ASSERT_EQ(sums, SumsOf(whole));
    }
  }
}

}  // namespace
}  // namespace troupe
