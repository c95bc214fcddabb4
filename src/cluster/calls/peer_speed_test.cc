#include "cluster/calls/peer_speed.h"

#include <gtest/gtest.h>

#include <random>

#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr std::size_t kRowBytes = 4096;

CallTimes Times(std::uint32_t experts, std::uint32_t rows, double noise) {
  const double computed = experts * (2e-3 + 5e-4 * rows / experts) * noise;
  const double way = 1e-3 + 1e-4 * rows;
  return {.experts = experts,
          .rows = rows,
          .row_bytes = kRowBytes,
          .seconds = way + computed + 3e-3,
          .waited = 3e-3,
          .computed = computed};
}

TEST(CallSeconds, DivideACallIntoItsWayWaitingAndComputing) {
  CallSeconds all;
  all.Add({.experts = 2, .rows = 5, .seconds = 0.5, .waited = 0.125, .computed = 0.25});
  all.Add({.experts = 1, .rows = 1, .seconds = 0.1, .waited = 0.125, .computed = 0});
  EXPECT_EQ(all.calls, 2u);
  EXPECT_EQ(all.rows, 6u);
  EXPECT_EQ(all.waited, 0.25);
  EXPECT_EQ(all.computed, 0.25);
  EXPECT_EQ(all.way, 0.125) << "never less than nothing, however clocks round";
}

constexpr Nanos kSecond = 1'000'000'000;

double SecondsFor(const Place& place, std::uint32_t experts, std::uint32_t rows) {
  return place.queued_seconds + place.latency_seconds + experts * place.expert_seconds +
         rows * place.row_seconds;
}

TEST(PeerSpeed, KnowsTheRoundTripBeforeTheFirstAnswer) {
  const PeerSpeed speed("b", 4e-4, 0);
  EXPECT_TRUE(speed.Expected(0, kRowBytes).measured());
  EXPECT_EQ(speed.Expected(0, kRowBytes).name, "b");
  EXPECT_EQ(SecondsFor(speed.Expected(0, kRowBytes), 3, 9), 4e-4);
}

TEST(PeerSpeed, LearnsTheWayComputingAndTheQueueApart) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> noise(0.95, 1.05);
  PeerSpeed speed("b", 1, 0);
  for (int i = 0; i < 500; ++i) {
    const auto experts = static_cast<std::uint32_t>(1 + random() % 6);
    speed.OnAnswered(Times(experts, experts * (1 + random() % 20), noise(random)), 0);
  }
  const Place place = speed.Measured(kRowBytes);
  EXPECT_NEAR(place.latency_seconds, 1e-3, 1e-4);
  EXPECT_NEAR(place.expert_seconds, 2e-3, 2e-4);
  EXPECT_NEAR(place.row_seconds, 6e-4, 6e-5);
  EXPECT_NEAR(place.queued_seconds, 3e-3, 1e-4);
  EXPECT_NEAR(SecondsFor(place, 4, 40), 3e-3 + 1e-3 + 4 * 2e-3 + 40 * 6e-4, 3e-3);
}

TEST(PeerSpeed, FollowsAPeerThatBecomesSlower) {
  PeerSpeed speed("b", 1e-3, 0);
  for (int i = 0; i < 100; ++i) speed.OnAnswered(Times(1 + i % 3, 1 + i % 3, 1), 0);
  const double before = SecondsFor(speed.Measured(kRowBytes), 1, 1);
  for (int i = 0; i < 300; ++i) speed.OnAnswered(Times(1 + i % 3, 1 + i % 3, 3), 0);
  EXPECT_GT(SecondsFor(speed.Measured(kRowBytes), 1, 1), before + 4e-3);
}

TEST(PeerSpeed, ALateAnswerCountsAsAQueueUntilTheNextOnes) {
  PeerSpeed speed("b", 1e-3, 0);
  speed.OnLate(0.5, 0);
  EXPECT_GE(SecondsFor(speed.Expected(0, kRowBytes), 1, 1), 0.5);
  for (int i = 0; i < 40; ++i) {
    speed.OnAnswered({.experts = 1, .rows = 1, .seconds = 2e-3, .waited = 0, .computed = 1e-3}, 0);
  }
  EXPECT_LT(SecondsFor(speed.Expected(0, kRowBytes), 1, 1), 5e-3);
}

TEST(PeerSpeed, AGreetingThatMetABusyMachineIsNotBelievedForEver) {
  PeerSpeed speed("b", 0.3, 0);
  EXPECT_EQ(speed.Expected(0, kRowBytes).latency_seconds, 0.3);
  EXPECT_LT(speed.Expected(30 * kSecond, kRowBytes).latency_seconds, 2e-3);
  speed.OnGreeted(4e-4);
  EXPECT_LT(speed.Expected(0, kRowBytes).latency_seconds, 0.2);
}

TEST(PeerSpeed, AFirstCallOfManyRowsDoesNotMakeEveryCallSeemSlow) {
  PeerSpeed speed("b", 4e-4, 0);
  speed.OnAnswered({.experts = 8,
                    .rows = 800,
                    .row_bytes = kRowBytes,
                    .seconds = 0.3,
                    .waited = 0,
                    .computed = 0.1},
                   0);
  EXPECT_LT(speed.Expected(0, kRowBytes).latency_seconds, 2e-3);
  EXPECT_GT(speed.Expected(0, kRowBytes).row_seconds, 1e-4);
}

TEST(PeerSpeed, APeerThatWasSlowIsTriedAgainLater) {
  PeerSpeed speed("b", 4e-4, 0);
  for (int i = 0; i < 100; ++i) {
    speed.OnAnswered({.experts = 1, .rows = 1, .seconds = 0.4, .waited = 0.1, .computed = 0.2}, 0);
  }
  EXPECT_GT(SecondsFor(speed.Expected(0, kRowBytes), 1, 1), 0.3);
  EXPECT_LT(SecondsFor(speed.Expected(20 * kSecond, kRowBytes), 1, 1), 2e-3);
  EXPECT_GT(SecondsFor(speed.Measured(kRowBytes), 1, 1), 0.3) << "what was measured stays";
  speed.OnAnswered({.experts = 1, .rows = 1, .seconds = 0.4, .waited = 0.1, .computed = 0.2},
                   20 * kSecond);
  EXPECT_GT(SecondsFor(speed.Expected(20 * kSecond, kRowBytes), 1, 1), 0.3) << "it is slow still";
}

// What fewer bytes save is known before the first call that brings fewer: the link was measured.
TEST(PeerSpeed, AnswersInFewerBytesAreExpectedSoonerByWhatTheLinkGives) {
  PeerSpeed speed("b", 1e-3, 0);
  for (std::uint32_t rows = 1; rows < 200; ++rows) speed.OnAnswered(Times(1, rows, 1), 0);
  const double whole = speed.Expected(0, kRowBytes).row_seconds;
  const double half = speed.Expected(0, kRowBytes / 2).row_seconds;
  EXPECT_NEAR(whole, 6e-4, 6e-5);  // 5e-4 to compute, 1e-4 on the way
  EXPECT_NEAR(half, 5.5e-4, 6e-5);
  EXPECT_NEAR(whole - half, 0.5e-4, 1e-5);
  EXPECT_NEAR(speed.byte_seconds(), 1e-4 / kRowBytes, 1e-5 / kRowBytes);
  // Then some that are half as long: it is the same link.
  for (std::uint32_t rows = 1; rows < 200; ++rows) {
    CallTimes times = Times(1, rows, 1);
    times.row_bytes /= 2;
    times.seconds -= 0.5e-4 * rows;
    speed.OnAnswered(times, 0);
  }
  EXPECT_NEAR(speed.Expected(0, kRowBytes).row_seconds, whole, 3e-5);
}

TEST(RunningLine, NeitherItsValueAtZeroNorItsSlopeIsBelowZero) {
  std::mt19937_64 random(TestSeed());
  std::uniform_real_distribution<double> draw(0, 1);
  for (int round = 0; round < 500; ++round) {
    RunningLine line;
    for (int i = 0; i < 1 + round % 20; ++i) line.Add(draw(random) * 10, draw(random));
    EXPECT_GE(line.at_zero(), 0);
    EXPECT_GE(line.slope(), 0);
  }
}

TEST(RunningLine, OfOneAmountAloneItKnowsTheMean) {
  RunningLine line(1);
  line.Add(4, 1);
  line.Add(4, 3);
  EXPECT_DOUBLE_EQ(line.at_zero(), 2);
  EXPECT_EQ(line.slope(), 0);
}

}  // namespace
}  // namespace troupe
