#include "expert/flow/medium.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::HasSubstr;

// A medium on a virtual clock: channels that each pass one request after the other, with some
// effort for each, and a latency that requests spend at the same time.
class FakeMedium {
 public:
  struct Speed {
    double latency_seconds = 100e-6;
    double bytes_per_second = 2e9;  // all channels together
    std::uint32_t channels = 1;
    double effort_seconds = 0;  // a request takes a channel beside its bytes
  };

  explicit FakeMedium(const Speed& speed) : speed_(speed), free_(speed.channels, 0) {}

  // When a request that is handed in at `now` is answered.
  double Read(double now, Bytes bytes) {
    double& channel = *std::ranges::min_element(free_);
    channel = std::max(channel, now) + speed_.effort_seconds +
              static_cast<double>(bytes.count()) * speed_.channels / speed_.bytes_per_second;
    return channel + speed_.latency_seconds;
  }

 private:
  Speed speed_;
  std::vector<double> free_;
};

using Ends = std::priority_queue<double, std::vector<double>, std::greater<>>;

// Bytes a second with always `depth` reads under way.
double Throughput(const FakeMedium::Speed& speed, Bytes piece, std::uint32_t depth) {
  constexpr int kReads = 2000;
  FakeMedium medium(speed);
  Ends ends;
  for (std::uint32_t i = 0; i < depth; ++i) ends.push(medium.Read(0, piece));
  double now = 0;
  for (int i = 0; i < kReads; ++i) {
    now = ends.top();
    ends.pop();
    ends.push(medium.Read(now, piece));
  }
  return kReads * static_cast<double>(piece.count()) / now;
}

// What a load takes whose pieces are all handed in after `ahead` reads of prefetches.
double LoadSeconds(const FakeMedium::Speed& speed, Bytes expert, const ReadShape& shape,
                   std::uint32_t ahead) {
  FakeMedium medium(speed);
  for (std::uint32_t i = 0; i < ahead; ++i) medium.Read(0, shape.prefetch_piece);
  double end = 0;
  for (Bytes left = expert; left > Bytes();) {
    const Bytes piece = std::min(left, shape.piece);
    end = std::max(end, medium.Read(0, piece));
    left -= piece;
  }
  return end;
}

// As io/disk_probe.h does it.
DiskCost Probe(const FakeMedium::Speed& speed) {
  DiskCost cost;
  for (const Bytes size : {4_KiB, 64_KiB, 256_KiB, 1_MiB, 4_MiB}) {
    ReadCost read;
    read.request = size;
    read.lone_seconds.Note(FakeMedium(speed).Read(0, size));
    read.bytes_per_second.Note(Throughput(speed, size, 64));
    cost.reads.push_back(read);
  }
  return cost;
}

struct Medium {
  const char* name;
  FakeMedium::Speed speed;
};
const std::vector<Medium> kMedia = {
    {"a slow link", {.latency_seconds = 100e-6, .bytes_per_second = 500e6}},
    {"a fast drive",
     {.latency_seconds = 60e-6, .bytes_per_second = 7e9, .channels = 8, .effort_seconds = 5e-6}},
    {"memory behind a bus", {.latency_seconds = 2e-6, .bytes_per_second = 24e9}},
    {"a network disk",
     {.latency_seconds = 2e-3, .bytes_per_second = 1e9, .channels = 16, .effort_seconds = 1e-5}},
    {"a disk that turns",
     {.latency_seconds = 0, .bytes_per_second = 150e6, .channels = 1, .effort_seconds = 8e-3}},
};

TEST(Medium, EveryMediumIsKeptBusyAndADemandWaitsNoLongerThanAllowed) {
  for (const Medium& medium : kMedia) {
    for (const Bytes expert : {200_KiB, 1_MiB, 3_MiB, 17_MiB}) {
      const MediumFacts facts{.reads = Probe(medium.speed), .expert = expert};
      const ReadShape shape = ShapeReads(facts);
      SCOPED_TRACE(
          fmt::format("{}, {}: {}", medium.name, ToString(expert), Describe(facts, shape)));
      EXPECT_EQ(shape.prefetch_piece.count() % 4096, 0u);
      EXPECT_EQ(shape.piece.count() % 4096, 0u);
      EXPECT_GE(shape.piece, shape.prefetch_piece);
      // Of what it gives to requests that are no larger than an expert.
      double best = 0;
      for (Bytes size = 4_KiB; size <= std::min(expert, 4_MiB); size = 2 * size) {
        best = std::max(best, Throughput(medium.speed, size, 64));
      }
      EXPECT_GE(Throughput(medium.speed, shape.prefetch_piece, shape.prefetch_reads), 0.9 * best);

      const double alone = LoadSeconds(medium.speed, expert, shape, 0);
      const double behind = LoadSeconds(medium.speed, expert, shape, shape.prefetch_reads);
      // Channels do not end at once: one may have a piece more than the others. And speeds between
      // the probe's sizes are interpolated, which is a tenth off where they rise with the size.
      const double channel = static_cast<double>(shape.prefetch_piece.count()) *
                                 medium.speed.channels / medium.speed.bytes_per_second +
                             medium.speed.effort_seconds;
      const double uneven = medium.speed.channels > 1 ? channel : 0;
      EXPECT_LE(behind - alone, MostWaitAllowed(facts) * 1.1 + uneven);
      EXPECT_LE(MostWait(facts, shape), MostWaitAllowed(facts) * 1.01);
    }
  }
}

TEST(Medium, FewerReadsThanItChoosesLeaveADeepMediumIdle) {
  const FakeMedium::Speed& network = kMedia[3].speed;
  const ReadShape shape = ShapeReads({.reads = Probe(network), .expert = 3_MiB});
  const double full = Throughput(network, shape.prefetch_piece, 64);
  EXPECT_LT(Throughput(network, shape.prefetch_piece, shape.prefetch_reads / 2), 0.7 * full);
  // And so does the shape of a medium that was not measured.
  const ReadShape unmeasured;
  EXPECT_LT(Throughput(network, unmeasured.prefetch_piece, unmeasured.prefetch_reads), 0.7 * full);
}

TEST(Medium, TheSpeedAtADepthIsWhatTheMediumGives) {
  const FakeMedium::Speed speed{.latency_seconds = 1e-3, .bytes_per_second = 1e9};
  const DiskCost reads = Probe(speed);
  for (const std::uint32_t depth : {1u, 2u, 4u, 8u, 32u}) {
    const double real = Throughput(speed, 256_KiB, depth);
    EXPECT_NEAR(SpeedAtDepth(reads, 256_KiB, depth), real, 0.02 * real) << depth;
  }
}

TEST(Medium, WhereNothingWasMeasuredTheShapeIsTheUsualOne) {
  EXPECT_EQ(ShapeReads({.expert = 3_MiB}), ReadShape());
  EXPECT_THAT(Describe({.expert = 3_MiB}, ReadShape()), HasSubstr("nothing was measured"));
  EXPECT_THAT(Describe({.expert = 3_MiB}, ReadShape()),
              HasSubstr("reads of 1.0 MiB; ahead 3 of 512.0 KiB"));
}

TEST(Medium, WhatRunsSawDoesNotChangeTheShape) {
  MediumFacts facts{.reads = Probe(kMedia[1].speed), .expert = 3_MiB, .away_seconds = 1e-4};
  const ReadShape shape = ShapeReads(facts);
  for (int run = 0; run < 20; ++run) facts.reads.NoteRun(1_GiB, 4096, 40);
  ASSERT_LT(facts.reads.BytesPerSecond(256_KiB), 1e8);
  EXPECT_EQ(ShapeReads(facts), shape);
}

TEST(Medium, ALinkBeforeTheDiskIsWhatCounts) {
  const DiskCost disk = Probe(kMedia[1].speed);
  const Bytes expert = 4_MiB;
  const MediumFacts behind{.reads = disk.Behind(100e6, 1e-4), .expert = expert};
  const ReadShape slow = ShapeReads(behind);
  EXPECT_LE(MostWait(behind, slow), 2 * 4.2e6 / 100e6 * 1.05);
  // A link of so little latency passes as much with far fewer bytes under way.
  const MediumFacts far{.reads = disk.Behind(2e9, 5e-3), .expert = expert};
  EXPECT_GT(ShapeReads(far).ahead().count(), 4 * slow.ahead().count());
  // Of a disk that was not measured the link's speed is all that is known.
  const ReadShape alone = ShapeReads({.reads = LinkAlone(100e6, 1e-4), .expert = expert});
  EXPECT_NE(alone, ReadShape());
  EXPECT_GE(Throughput({.latency_seconds = 1e-4, .bytes_per_second = 100e6}, alone.prefetch_piece,
                       alone.prefetch_reads),
            0.9 * 100e6);
}

TEST(Medium, WhileComputingMoreIsUnderWayAsFarAsDemandAllows) {
  MediumFacts facts{.reads = Probe(kMedia[0].speed), .expert = 16_MiB};
  const ReadShape busy = ShapeReads(facts);
  facts.away_seconds = 4e-3;
  const ReadShape away = ShapeReads(facts);
  EXPECT_GE(away.ahead().count(), busy.ahead().count() + 2'000'000);
  facts.away_seconds = 1;
  EXPECT_LE(MostWait(facts, ShapeReads(facts)), MostWaitAllowed(facts) * 1.01);
}

TEST(Medium, SmallReadsThatTheMediumIsSlowAtAreNotMade) {
  const FakeMedium::Speed disk = kMedia[4].speed;
  const ReadShape shape = ShapeReads({.reads = Probe(disk), .expert = 16_MiB});
  EXPECT_GE(shape.prefetch_piece, 2_MiB);
  EXPECT_GE(shape.piece, 2_MiB);
}

TEST(Medium, AProbeThatSomethingDisturbedForAMomentShapesNothing) {
  const MediumFacts calm{.reads = Probe(kMedia[0].speed), .expert = 1_MiB, .away_seconds = 50e-6};
  for (std::size_t size = 1; size + 1 < calm.reads.reads.size(); ++size) {
    MediumFacts disturbed = calm;
    RunningMean& speed = disturbed.reads.reads[size].bytes_per_second;
    speed = {.value = speed.value / 10, .samples = 1};
    EXPECT_EQ(ShapeReads(disturbed).piece, ShapeReads(calm).piece) << size;
    EXPECT_EQ(ShapeReads(disturbed).prefetch_piece, ShapeReads(calm).prefetch_piece) << size;
  }
}

TEST(Medium, AShapeOfAnyMediumCanBeObeyed) {
  Rng rng(TestSeed());
  for (int round = 0; round < 3000; ++round) {
    MediumFacts facts{.expert = Bytes(1 + rng.Below(30'000'000)),
                      .away_seconds = rng.Uniform() * 1e-2};
    Bytes size = 4_KiB;
    for (std::uint64_t sizes = 1 + rng.Below(5); sizes > 0; --sizes, size = 4 * size) {
      ReadCost read;
      read.request = size;
      read.lone_seconds.Note(1e-6 + rng.Uniform() * 1e-2);
      read.bytes_per_second.Note(1e6 + rng.Uniform() * 1e10);
      facts.reads.reads.push_back(read);
    }
    const ReadShape shape = ShapeReads(facts);
    EXPECT_GE(shape.prefetch_piece, 4_KiB);
    EXPECT_EQ(shape.prefetch_piece.count() % 4096, 0u);
    EXPECT_GE(shape.piece, shape.prefetch_piece);
    EXPECT_EQ(shape.piece.count() % 4096, 0u);
    EXPECT_LE(shape.piece, 4_MiB);
    EXPECT_GE(shape.prefetch_reads, 1u);
    EXPECT_LE(shape.prefetch_reads, 32u);
    EXPECT_EQ(shape, ShapeReads(facts));
  }
}

}  // namespace
}  // namespace troupe
