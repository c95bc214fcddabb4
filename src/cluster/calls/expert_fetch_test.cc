#include "cluster/calls/expert_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr Nanos kMilli = 1'000'000;
constexpr std::size_t kPieceBytes = 4;

std::uint64_t SumOf(std::span<const std::byte> bytes) {
  std::uint64_t sum = bytes.size();
  for (const std::byte byte : bytes) sum = sum * 31 + std::to_integer<std::uint64_t>(byte);
  return sum;
}

std::vector<std::byte> BytesOf(ExpertId id, std::size_t size = 10) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = std::byte(id.expert * 16 + i);
  return bytes;
}

ExpertFetch::Wanted WantedOf(ExpertId id, std::vector<std::uint64_t> sources) {
  const std::vector<std::byte> bytes = BytesOf(id);
  return {.id = id, .bytes = bytes.size(), .checksum = SumOf(bytes), .sources = std::move(sources)};
}

class ExpertFetching : public testing::Test {
 protected:
  // What an honest source would say.
  void Answer(const ExpertFetch::Request& request, Nanos now) {
    const std::vector<std::byte> bytes = BytesOf(request.id);
    const std::size_t size = std::min(kPieceBytes, bytes.size() - request.offset);
    fetch_.OnPiece(request.source,
                   {.number = request.number,
                    .id = request.id,
                    .total = bytes.size(),
                    .offset = request.offset,
                    .checksum = SumOf(bytes),
                    .data = std::span(bytes).subspan(request.offset, size)},
                   now);
  }

  ExpertFetch fetch_{SumOf, 100 * kMilli};
};

TEST_F(ExpertFetching, ExpertsComePieceByPieceOneAfterTheOther) {
  fetch_.Begin({WantedOf({1, 2}, {7}), WantedOf({1, 3}, {8})});
  std::vector<std::pair<std::uint64_t, std::uint64_t>> asked;
  Nanos now = 0;
  while (fetch_.busy()) {
    EXPECT_FALSE(fetch_.TakeDone());
    now = std::max(now, *fetch_.NextTime());
    const auto request = fetch_.Next(now);
    ASSERT_TRUE(request);
    EXPECT_EQ(fetch_.Next(now), std::nullopt);  // one at a time
    asked.emplace_back(request->source, request->offset);
    Answer(*request, now += kMilli);
  }
  EXPECT_THAT(asked,
              ElementsAre(Pair(7, 0), Pair(7, 4), Pair(7, 8), Pair(8, 0), Pair(8, 4), Pair(8, 8)));
  const auto done = fetch_.TakeDone();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->at({1, 2}), BytesOf({1, 2}));
  EXPECT_EQ(done->at({1, 3}), BytesOf({1, 3}));
  EXPECT_EQ(fetch_.counters(), (FetchCounters{.experts = 2, .bytes = 20}));
}

TEST_F(ExpertFetching, ItRestsAsLongAsAPieceTook) {
  fetch_.Begin({WantedOf({1, 2}, {7})});
  const auto request = fetch_.Next(0);
  Answer(*request, 30 * kMilli);
  EXPECT_EQ(fetch_.Next(59 * kMilli), std::nullopt);
  EXPECT_EQ(fetch_.NextTime(), 60 * kMilli);
  EXPECT_TRUE(fetch_.Next(60 * kMilli));
}

TEST_F(ExpertFetching, AnotherSourceGoesOnWhereOneWasLost) {
  fetch_.Begin({WantedOf({1, 2}, {7, 8, 9})});
  Answer(*fetch_.Next(0), 0);
  ASSERT_EQ(fetch_.Next(0)->offset, 4u);
  fetch_.OnLost(7);
  auto request = fetch_.Next(0);
  EXPECT_EQ(request->source, 8u);
  EXPECT_EQ(request->offset, 4u);
  fetch_.OnRefused(8, request->number);
  request = fetch_.Next(kMilli);
  EXPECT_EQ(request->source, 9u);
  Answer(*request, kMilli);
  Answer(*fetch_.Next(kMilli), kMilli);
  EXPECT_EQ(fetch_.TakeDone()->at({1, 2}), BytesOf({1, 2}));
  EXPECT_EQ(fetch_.counters().resumed, 2u);
}

TEST_F(ExpertFetching, WhoIsSilentIsLeftAndWithoutAnybodyTheDiskIs) {
  fetch_.Begin({WantedOf({1, 2}, {7, 8}), WantedOf({1, 3}, {})});
  ASSERT_TRUE(fetch_.Next(0));
  EXPECT_EQ(fetch_.NextTime(), 100 * kMilli);
  const auto second = fetch_.Next(100 * kMilli);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->source, 8u);
  EXPECT_EQ(fetch_.Next(200 * kMilli), std::nullopt);
  ASSERT_TRUE(fetch_.TakeDone());
  EXPECT_EQ(fetch_.counters().left, 2u);
}

TEST_F(ExpertFetching, WhatTakesLongerThanTheDiskIsLeftToIt) {
  ExpertFetch::Wanted slow = WantedOf({1, 2}, {7, 8});
  slow.longest = 50 * kMilli;
  fetch_.Begin({slow, WantedOf({1, 3}, {7})});
  Answer(*fetch_.Next(0), 20 * kMilli);
  const auto second = fetch_.Next(40 * kMilli);
  ASSERT_TRUE(second);
  const auto other = fetch_.Next(50 * kMilli);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->id, (ExpertId{1, 3}));
  EXPECT_EQ(other->offset, 0u);
  Answer(*second, 51 * kMilli);  // nobody wants it any more
  EXPECT_EQ(fetch_.counters(), (FetchCounters{.bytes = 4, .left = 1}));
}

TEST_F(ExpertFetching, LatePiecesOfALeftSourceAreNotTaken) {
  fetch_.Begin({WantedOf({1, 2}, {7, 8})});
  const auto first = fetch_.Next(0);
  const auto second = fetch_.Next(100 * kMilli);
  Answer(*first, 101 * kMilli);
  EXPECT_EQ(fetch_.counters().bytes, 0u);
  Answer(*second, 101 * kMilli);
  EXPECT_EQ(fetch_.counters().bytes, 4u);
}

TEST_F(ExpertFetching, WhatIsNotAsItShouldBeIsLeft) {
  const std::vector<std::byte> bytes = BytesOf({1, 2});
  const ExpertFetch::Piece right{.id = {1, 2},
                                 .total = 10,
                                 .offset = 0,
                                 .checksum = SumOf(bytes),
                                 .data = std::span(bytes).first(4)};
  std::vector<ExpertFetch::Piece> wrong(5, right);
  wrong[0].id = {1, 3};
  wrong[1].total = 12;
  wrong[2].offset = 4;
  wrong[3].checksum = 1;
  wrong[4].data = {};
  for (ExpertFetch::Piece piece : wrong) {
    ExpertFetch fetch(SumOf);
    fetch.Begin({WantedOf({1, 2}, {7})});
    piece.number = fetch.Next(0)->number;
    fetch.OnPiece(7, piece, 0);
    EXPECT_EQ(fetch.counters().wrong, 1u);
    EXPECT_EQ(fetch.Next(0), std::nullopt);
    EXPECT_TRUE(fetch.TakeDone()->empty());
  }
}

TEST_F(ExpertFetching, WithoutAChecksumOfItsSourceTheOwnOneTells) {
  for (const bool is_true : {true, false}) {
    std::vector<std::byte> bytes = BytesOf({1, 2});
    if (!is_true) bytes[5] ^= std::byte{1};
    fetch_.Begin({WantedOf({1, 2}, {7})});
    fetch_.OnPiece(7,
                   {.number = fetch_.Next(0)->number,
                    .id = {1, 2},
                    .total = 10,
                    .offset = 0,
                    .checksum = std::nullopt,
                    .data = bytes},
                   0);
    EXPECT_EQ(fetch_.TakeDone()->size(), is_true ? 1u : 0u);
  }
  EXPECT_EQ(fetch_.counters().wrong, 1u);
}

TEST_F(ExpertFetching, AnExpertWhoseBytesAreNotItsChecksumsIsLeftToTheDisk) {
  std::vector<std::byte> bytes = BytesOf({1, 2});
  const std::uint64_t checksum = SumOf(bytes);
  bytes[5] ^= std::byte{1};
  fetch_.Begin({WantedOf({1, 2}, {7})});
  fetch_.OnPiece(7,
                 {.number = fetch_.Next(0)->number,
                  .id = {1, 2},
                  .total = 10,
                  .offset = 0,
                  .checksum = checksum,
                  .data = bytes},
                 0);
  EXPECT_TRUE(fetch_.TakeDone()->empty());
  EXPECT_EQ(fetch_.counters(), (FetchCounters{.bytes = 10, .wrong = 1, .left = 1}));
}

TEST_F(ExpertFetching, WhateverSourcesDoOnlyTrueBytesComeAndItEnds) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 500; ++round) {
    SCOPED_TRACE(round);
    ExpertFetch fetch(SumOf, 100);
    std::vector<ExpertFetch::Wanted> wanted;
    for (std::uint32_t expert = 0; expert < 1 + random() % 3; ++expert) {
      wanted.push_back(WantedOf({1, expert}, {7, 8, 9}));
    }
    fetch.Begin(wanted);
    Nanos now = 0;
    for (int step = 0; fetch.busy(); ++step) {
      ASSERT_LT(step, 1000);
      now += static_cast<Nanos>(random() % 60);
      const auto request = fetch.Next(now);
      if (random() % 20 == 0) fetch.OnLost(7 + random() % 3);
      if (!request) continue;
      std::vector<std::byte> bytes = BytesOf(request->id);
      const std::uint64_t checksum = SumOf(bytes);
      const auto what = random() % 8;
      if (what == 0) bytes[request->offset] ^= std::byte{4};
      if (what == 1) continue;  // silence
      if (what == 2) {
        fetch.OnRefused(request->source, request->number);
        continue;
      }
      const std::size_t size = std::min(kPieceBytes, bytes.size() - request->offset);
      fetch.OnPiece(request->source,
                    {.number = request->number,
                     .id = request->id,
                     .total = bytes.size(),
                     .offset = request->offset,
                     .checksum = checksum,
                     .data = std::span(bytes).subspan(request->offset, size)},
                    now);
    }
    const FetchCounters& counters = fetch.counters();
    const auto done = fetch.TakeDone();
    ASSERT_TRUE(done);
    EXPECT_EQ(counters.experts, done->size());
    EXPECT_EQ(counters.experts + counters.left, wanted.size());
    for (const auto& [id, bytes] : *done) EXPECT_EQ(bytes, BytesOf(id));
  }
}

}  // namespace
}  // namespace troupe
