#include "cluster/step_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/face/node_buffers.h"
#include "cluster/wire/fetch.h"
#include "store/container_format.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kFetchedGrid{.layers = 2, .experts = 4};
constexpr std::size_t kFetchedBytes = 1000, kRowBytes = 100;

std::vector<std::byte> SlotOf(ExpertId id) {
  return std::vector<std::byte>(kFetchedBytes, std::byte(10 * id.layer + id.expert));
}

// Peers "slow" and "fast" are 1 and 2; each holds all experts of layer 1.
class StepFetching : public testing::Test {
 protected:
  StepFetching() {
    ExpertBits held(kFetchedGrid);
    for (std::uint32_t expert = 0; expert < kFetchedGrid.experts; ++expert) held.Add({1, expert});
    for (const LinkId link : {1, 2}) {
      directory_.OnCame(link == 1 ? "slow" : "fast", link, /*start=*/link, 1e-3);
      directory_.OnHoldings(link, held);
    }
  }

  StepFetcher Fetcher(bool has_checksums = true) {
    return {{.row_bytes = kRowBytes,
             .bytes_of = [](std::uint32_t) { return kFetchedBytes; },
             .checksum_of =
                 [has_checksums](ExpertId id) {
                   return has_checksums ? std::optional(ContainerChecksum(SlotOf(id)))
                                        : std::nullopt;
                 }},
            directory_,
            [this](LinkId link, std::vector<std::byte> frame) {
              if (dead_ == link) return Error(Code::kUnavailable, "gone");
              sent_.emplace_back(link, DecodePeerFetch(frame).value());
              return OkStatus();
            }};
  }
  // Rows in 1 ms are 100 kB/s, in 0.1 ms 1 MB/s.
  std::vector<MeasuredLink> Links() const {
    return {{.peer = "slow", .round_trip_seconds = 1e-3, .byte_seconds = 1e-3 / kRowBytes},
            {.peer = "fast", .round_trip_seconds = 1e-3, .byte_seconds = 1e-4 / kRowBytes}};
  }
  static std::vector<std::byte> PieceFor(const PeerFetch& fetch) {
    const std::vector<std::byte> slot = SlotOf(fetch.expert);
    return Encode(PeerPiece{.id = fetch.id,
                            .expert = fetch.expert,
                            .total = slot.size(),
                            .offset = fetch.offset,
                            .hash = ContainerChecksum(slot),
                            .data = slot});
  }

  PeerDirectory directory_;
  std::vector<std::pair<LinkId, PeerFetch>> sent_;
  LinkId dead_ = 0;
};

TEST_F(StepFetching, AStepsExpertsComeFromTheFastestHolder) {
  StepFetcher fetcher = Fetcher();
  EXPECT_FALSE(fetcher.NextTime());
  ASSERT_FALSE(fetcher.Begin({.layer = 1, .experts = {2, 3}}, Links(), 100e3).empty());
  std::optional<FetchedExperts> fetched;
  Nanos now = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_FALSE(fetched = fetcher.OnTime(now));
    ASSERT_EQ(sent_.size(), i + 1u);
    EXPECT_EQ(sent_.back().first, 2u);
    fetcher.OnFrame(2, PieceFor(sent_.back().second), now += 1000);
    now = fetcher.NextTime().value_or(now);
  }
  fetched = fetcher.OnTime(now);
  ASSERT_TRUE(fetched);
  EXPECT_EQ(fetched->at({1, 2}), SlotOf({1, 2}));
  EXPECT_EQ(fetched->at({1, 3}), SlotOf({1, 3}));
  EXPECT_FALSE(fetcher.OnTime(now));  // it was told
  EXPECT_EQ(fetcher.counters().experts, 2u);
}

TEST_F(StepFetching, NoMoreAreOnTheirWayThanThePlanOfMemoryCounts) {
  static_assert(kExpertsFetched == 2);
  StepFetcher fetcher = Fetcher();
  EXPECT_THAT(fetcher.Begin({.layer = 1, .experts = {0, 1, 2, 3}}, Links(), 100e3),
              ElementsAre(0, 1));
  std::optional<FetchedExperts> fetched;
  for (Nanos now = 0; !(fetched = fetcher.OnTime(now)); now = fetcher.NextTime().value_or(now)) {
    ASSERT_LE(sent_.size(), kExpertsFetched);
    fetcher.OnFrame(2, PieceFor(sent_.back().second), now += 1000);
  }
  EXPECT_TRUE(fetched->contains({1, 0}) && fetched->contains({1, 1}));
  EXPECT_EQ(fetched->size(), kExpertsFetched);
}

TEST_F(StepFetching, WhereTheFirstExpertIsToBeReadTheOthersAreReadWithIt) {
  ExpertBits one(kFetchedGrid);
  one.Add({0, 1});
  directory_.OnHoldings(2, one);
  StepFetcher fetcher = Fetcher();
  EXPECT_THAT(fetcher.Begin({.layer = 0, .experts = {0, 1}}, Links(), 100e3), IsEmpty());
  EXPECT_THAT(fetcher.Begin({.layer = 0, .experts = {1, 0}}, Links(), 100e3), ElementsAre(1));
}

TEST_F(StepFetching, WhatTheDiskGivesFasterOrNobodyHoldsIsNotFetched) {
  StepFetcher fetcher = Fetcher();
  EXPECT_THAT(fetcher.Begin({.layer = 1, .experts = {2}}, Links(), 3e6),
              IsEmpty());  // thrice the fast one
  EXPECT_THAT(fetcher.Begin({.layer = 0, .experts = {2}}, Links(), 100e3), IsEmpty());
  EXPECT_THAT(fetcher.Begin({.layer = 1, .experts = {2}}, {}, 100e3),
              IsEmpty());  // no speed is known
  EXPECT_THAT(fetcher.Begin({.layer = 1, .experts = {2}}, Links(), 0), IsEmpty());
  StepFetcher blind = Fetcher(/*has_checksums=*/false);
  EXPECT_THAT(blind.Begin({.layer = 1, .experts = {2}}, Links(), 100e3), IsEmpty());
  EXPECT_TRUE(sent_.empty());
}

TEST_F(StepFetching, AHolderThatCannotBeAskedIsPassedOver) {
  StepFetcher fetcher = Fetcher();
  dead_ = 2;
  ASSERT_FALSE(fetcher.Begin({.layer = 1, .experts = {2}}, Links(), 100e3).empty());
  EXPECT_FALSE(fetcher.OnTime(0));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].first, 1u);
  fetcher.OnFrame(
      1,
      Encode(PeerFetchRefused{
          .id = sent_[0].second.id, .reason = PeerFetchRefused::Reason::kNotHeld, .text = "gone"}),
      10);
  const auto fetched = fetcher.OnTime(10);
  ASSERT_TRUE(fetched);
  EXPECT_TRUE(fetched->empty());
  EXPECT_EQ(fetcher.counters().left, 1u);
}

TEST_F(StepFetching, AFetchThatBecameSlowerThanTheDiskIsGivenUp) {
  StepFetcher fetcher = Fetcher();
  ASSERT_FALSE(fetcher.Begin({.layer = 1, .experts = {2}}, Links(), 100e3).empty());
  EXPECT_FALSE(fetcher.OnTime(0));
  EXPECT_FALSE(fetcher.OnTime(1'000'000'000));
  const auto fetched = fetcher.OnTime(1'200'000'000);  // 4 times 40 ms, and a second
  ASSERT_TRUE(fetched);
  EXPECT_TRUE(fetched->empty());
}

}  // namespace
}  // namespace troupe
