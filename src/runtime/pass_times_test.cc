#include "runtime/pass_times.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

PassFacts Decode() { return OneGroup(0, Phase::kDecode, 1); }

TEST(PassTimes, DividesAPassByLayersAndTellsWhatEachWaitedFor) {
  PassTimes times(4);
  times.OnPassBegins(Decode(), 100);
  times.OnAsked(1, 110);
  times.OnStalled({115, 125});
  times.OnMiss({.id = {1, 7}});
  times.OnAsked(2, 140);
  times.OnPassEnds(170);
  ASSERT_EQ(times.passes().size(), 1u);
  const TimedPass& pass = times.passes().front();
  EXPECT_EQ(pass.time, (TimeSpan{100, 170}));
  EXPECT_EQ(pass.stalled(), 10);
  ASSERT_EQ(pass.layers.size(), 2u);
  EXPECT_EQ(pass.layers[0].time, (TimeSpan{110, 140}));
  EXPECT_EQ(pass.layers[0].stalled, 10);
  ASSERT_EQ(pass.layers[0].misses.size(), 1u);
  EXPECT_EQ(pass.layers[0].misses[0].id, (ExpertId{1, 7}));
  EXPECT_EQ(pass.layers[1].time, (TimeSpan{140, 170}));
  EXPECT_EQ(pass.layers[1].stalled, 0);
}

TEST(PassTimes, ReadsGoOnUntilSomethingHasCome) {
  PassTimes times(4);
  times.OnPassBegins(Decode(), 100);
  times.OnReads({90, 105}, 0);
  times.OnReads({105, 120}, 512);
  times.OnReads({120, 130}, 512);
  times.OnReads({150, 180}, 0);
  times.OnPassEnds(170);
  const TimedPass& pass = times.passes().front();
  ASSERT_EQ(pass.reads.size(), 3u);
  EXPECT_EQ(pass.reads[0], (ReadSpan{{90, 120}, 512}));
  EXPECT_EQ(pass.reads[1], (ReadSpan{{120, 130}, 512}));
  EXPECT_EQ(pass.reading(), 20 + 10 + 20);  // of its own time
}

TEST(PassTimes, AReadFromOnePassIntoTheNextBelongsToBoth) {
  PassTimes times(4);
  times.OnPassBegins(Decode(), 100);
  times.OnPassEnds(150);
  times.OnPassBegins(Decode(), 160);
  times.OnReads({140, 170}, 512);
  times.OnReads({145, 180}, 512);
  times.OnPassEnds(190);
  ASSERT_EQ(times.passes()[0].reads.size(), 1u);
  EXPECT_EQ(times.passes()[0].reads[0], (ReadSpan{{140, 150}, 512}));
  EXPECT_EQ(times.passes()[1].reads[0], (ReadSpan{{140, 170}, 512}));
}

TEST(PassTimes, KeepsTheLastDecodePassesAndKnowsTheSlowest) {
  PassTimes times(2);
  EXPECT_EQ(times.Slowest(), nullptr);
  Nanos now = 0;
  for (const Nanos length : {50, 20, 30}) {
    times.OnPassBegins(Decode(), now);
    times.OnPassEnds(now += length);
  }
  times.OnPassBegins(OneGroup(0, Phase::kPrompt, 4), now);
  times.OnAsked(0, now);
  times.OnStalled({now, now + 5});
  times.OnReads({now, now + 5}, 1);
  times.OnPassEnds(now + 900);
  EXPECT_EQ(times.passes().size(), 2u);
  EXPECT_EQ(times.Slowest()->number, 3u);
  EXPECT_EQ(times.Slowest()->time.length(), 30);
}

}  // namespace
}  // namespace troupe
