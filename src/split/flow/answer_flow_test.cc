#include "split/flow/answer_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Tokens = std::vector<TokenId>;

constexpr Nanos kMs = 1'000'000;
constexpr CloudView kAway{.usable = false, .better = std::nullopt};
constexpr CloudView kBetter{.usable = true, .better = Side::kCloud};

FlowStep OneToken(AnswerFlow& flow, RunId run, TokenId token, Nanos now = 0) {
  return flow.OnTokens(run, std::array{token}, now);
}

RunId StartedIn(const FlowStep& step, Side place) {
  for (const FlowStep::Start& start : step.start) {
    if (start.place == place) return start.run;
  }
  return 0;
}

TEST(AnswerFlow, TakesTheTokensOfThePlaceThatItBeganIn) {
  AnswerFlow flow;
  const FlowStep begun = flow.Begin(Side::kCloud, kBetter, 0);
  ASSERT_EQ(begun.start.size(), 1u);
  const RunId cloud = StartedIn(begun, Side::kCloud);
  EXPECT_THAT(flow.OnTokens(cloud, Tokens{5, 6}, 0).tokens, ElementsAre(5, 6));
  const FlowStep end = flow.OnEnd(cloud, FinishReason::kEndToken, 0);
  EXPECT_EQ(end.finish, FinishReason::kEndToken);
  EXPECT_THAT(end.stop, IsEmpty()) << "it has ended by itself";
  EXPECT_THAT(flow.OnTokens(cloud, Tokens{7}, 0).tokens, IsEmpty());
}

TEST(AnswerFlow, TheEndGoesOnBehindTheTokensThatAFailedCloudHasGiven) {
  AnswerFlow flow;
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  (void)flow.OnTokens(cloud, Tokens{5, 6}, 0);
  const FlowStep failed = flow.OnFailure(cloud, DataLoss("cut off"), 0);
  const RunId end = StartedIn(failed, Side::kEnd);
  ASSERT_NE(end, 0u);
  EXPECT_TRUE(failed.failure.ok());
  EXPECT_EQ(failed.start[0].why, FlowStep::Why::kFailure);
  EXPECT_THAT(OneToken(flow, end, 7).tokens, ElementsAre(7));
  EXPECT_THAT(flow.tokens(), ElementsAre(5, 6, 7));
  EXPECT_EQ(flow.counts().failures, 1u);
  EXPECT_EQ(flow.counts().taken_over, (std::array<std::uint64_t, 2>{1, 0}));
}

TEST(AnswerFlow, AnAnswerThatWaitsLeavesAtOnceForThePlaceThatHasTimeAndNotForEver) {
  AnswerFlow flow({.first_again = 0, .moves = 2});
  const CloudView to_end{.usable = true, .better = Side::kEnd, .waits = true};
  const CloudView to_cloud{.usable = true, .better = Side::kCloud, .waits = true};
  const RunId first = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  EXPECT_THAT(flow.OnTime(to_cloud, 1).start, IsEmpty()) << "it is there";
  const FlowStep moved = flow.OnTime(to_end, 1);
  EXPECT_THAT(moved.stop, ElementsAre(first));
  EXPECT_EQ(moved.start[0].why, FlowStep::Why::kMove);
  EXPECT_NE(StartedIn(moved, Side::kEnd), 0u);
  EXPECT_EQ(flow.holder(), Side::kEnd);
  for (const CloudView& no :
       {CloudView{.usable = false, .better = Side::kCloud, .waits = true},
        CloudView{.usable = true, .has_room = false, .better = Side::kCloud, .waits = true}}) {
    EXPECT_THAT(flow.OnTime(no, 2).start, IsEmpty());
    EXPECT_THAT(flow.OnTime(no, 2).stop, IsEmpty()) << "it keeps its place in line";
  }
  const RunId back = StartedIn(flow.OnTime(to_cloud, 2), Side::kCloud);
  const FlowStep beside = flow.OnTime(to_end, 3);
  EXPECT_NE(StartedIn(beside, Side::kEnd), 0u);
  EXPECT_THAT(beside.stop, IsEmpty()) << "it was moved often enough";
  EXPECT_THAT(OneToken(flow, back, 5, 4).tokens, ElementsAre(5));
  EXPECT_EQ(flow.counts().moved, (std::array<std::uint64_t, 2>{1, 1}));
  EXPECT_EQ(flow.counts().taken_over, (std::array<std::uint64_t, 2>{}));
}

TEST(AnswerFlow, HandsOverAgainWhenTheCloudIsBackAndTheEndWorksOnUntilItHasCaughtUp) {
  AnswerFlow flow;
  const RunId first = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  const RunId end = StartedIn(flow.OnFailure(first, DataLoss("cut"), 0), Side::kEnd);
  (void)OneToken(flow, end, 5, 10 * kMs);
  EXPECT_THAT(flow.OnTime(kAway, 500 * kMs).start, IsEmpty());
  EXPECT_THAT(flow.OnTime(kBetter, 500 * kMs).start, IsEmpty()) << "too soon after it failed";
  const RunId cloud = StartedIn(flow.OnTime(kBetter, 2000 * kMs), Side::kCloud);
  ASSERT_NE(cloud, 0u);
  EXPECT_THAT(OneToken(flow, end, 6, 2001 * kMs).stop, IsEmpty());
  EXPECT_THAT(OneToken(flow, cloud, 6, 2002 * kMs).tokens, IsEmpty()) << "the end had it before";
  const FlowStep caught_up = OneToken(flow, cloud, 7, 2003 * kMs);
  EXPECT_THAT(caught_up.tokens, ElementsAre(7));
  EXPECT_THAT(caught_up.stop, ElementsAre(end));
  EXPECT_EQ(flow.holder(), Side::kCloud);
  EXPECT_EQ(flow.counts().unused[1], 1u);
}

TEST(AnswerFlow, GivesUpAReplacementThatStaysBehindAndWaitsLongerEachTime) {
  AnswerFlow flow({.first_again = 1000 * kMs, .patience = 3});
  const RunId end = StartedIn(flow.Begin(Side::kEnd, kAway, 0), Side::kEnd);
  (void)flow.OnTokens(end, Tokens{1}, 0);
  const RunId cloud = StartedIn(flow.OnTime(kBetter, 0), Side::kCloud);
  (void)flow.OnTokens(end, Tokens{2, 3, 4, 5, 6, 7}, 0);
  EXPECT_THAT(flow.OnTokens(cloud, Tokens{2, 3}, 0).stop, IsEmpty());
  EXPECT_THAT(OneToken(flow, cloud, 4).stop, ElementsAre(cloud));
  EXPECT_THAT(flow.OnTime(kBetter, 999 * kMs).start, IsEmpty());
  EXPECT_EQ(flow.OnTime(kBetter, 1000 * kMs).start.size(), 1u);
}

TEST(AnswerFlow, TheEndStandsInForACloudThatIsSilentAndStopsWhenItSpeaksAgain) {
  AnswerFlow flow({.silence = 100 * kMs});
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  (void)flow.OnHeard(cloud, 80 * kMs);
  EXPECT_THAT(flow.OnTime(kBetter, 170 * kMs).start, IsEmpty());
  const FlowStep silent = flow.OnTime(kBetter, 180 * kMs);
  const RunId end = StartedIn(silent, Side::kEnd);
  ASSERT_NE(end, 0u);
  EXPECT_EQ(silent.start[0].why, FlowStep::Why::kSilence);
  EXPECT_EQ(silent.start[0].for_time, 100 * kMs);
  const FlowStep speaks = OneToken(flow, cloud, 5, 190 * kMs);
  EXPECT_THAT(speaks.tokens, ElementsAre(5));
  EXPECT_THAT(speaks.stop, ElementsAre(end));
  EXPECT_EQ(flow.counts().silences, 1u);
}

TEST(AnswerFlow, WhoStandsInAndIsFirstTakesOverAndTheSilentOneIsLeftForAWhile) {
  AnswerFlow flow({.silence = 100 * kMs, .first_again = 1000 * kMs});
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  const RunId end = StartedIn(flow.OnTime(kBetter, 100 * kMs), Side::kEnd);
  EXPECT_THAT(OneToken(flow, end, 5, 120 * kMs).stop, ElementsAre(cloud));
  EXPECT_THAT(flow.OnTime(kBetter, 500 * kMs).start, IsEmpty());
  EXPECT_NE(StartedIn(flow.OnTime(kBetter, 1120 * kMs), Side::kCloud), 0u);
}

// A view of a cloud whose next token is expected in that time.
CloudView Expecting(std::optional<Nanos> in) {
  return {.usable = true, .better = Side::kCloud, .next_token_in = in};
}

// Whether the end stands in for a cloud that says nothing but that it lives, until `until`.
bool StandsInBy(AnswerFlow& flow, RunId cloud, const CloudView& view, Nanos from, Nanos until) {
  bool stands_in = false;
  for (Nanos now = from; now <= until && !stands_in; now += 25 * kMs) {
    (void)flow.OnHeard(cloud, now);
    stands_in = StartedIn(flow.OnTime(view, now), Side::kEnd) != 0;
  }
  return stands_in;
}

constexpr FlowLimits kStalls{.silence = 500 * kMs,
                             .stall_factor = 4,
                             .least_stall = 2000 * kMs,
                             .unmeasured_stall = 9000 * kMs};

TEST(AnswerFlow, TheEndStandsInForACloudThatLivesAndGivesNoToken) {
  AnswerFlow flow(kStalls);
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  const CloudView view = Expecting(100 * kMs);
  EXPECT_FALSE(StandsInBy(flow, cloud, view, 0, 1975 * kMs));
  (void)flow.OnHeard(cloud, 2000 * kMs);
  const FlowStep stands_in = flow.OnTime(view, 2000 * kMs);
  ASSERT_EQ(stands_in.start.size(), 1u);
  EXPECT_EQ(stands_in.start[0].why, FlowStep::Why::kStall);
  EXPECT_EQ(stands_in.start[0].for_time, 2000 * kMs);
  EXPECT_EQ(flow.counts().stalls, 1u);
  EXPECT_EQ(flow.counts().silences, 0u) << "it said that it lives";
  EXPECT_THAT(OneToken(flow, cloud, 5, 2100 * kMs).stop, testing::SizeIs(1)) << "it goes on again";
  EXPECT_FALSE(StandsInBy(flow, cloud, view, 2100 * kMs, 4075 * kMs)) << "since its last token";
  EXPECT_TRUE(StandsInBy(flow, cloud, view, 4100 * kMs, 4100 * kMs));
}

TEST(AnswerFlow, ALongPromptOrQueueInTheCloudIsNoSilence) {
  AnswerFlow flow(kStalls);
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  // It waits for 20 s, of which less and less is left, and is read for 5 s, four times as slowly as
  // is expected.
  for (Nanos now = 0; now < 40'000 * kMs; now += 25 * kMs) {
    const Nanos left = std::max<Nanos>(25'000 * kMs - now, 50 * kMs);
    ASSERT_FALSE(StandsInBy(flow, cloud, Expecting(left), now, now)) << now;
  }
  EXPECT_THAT(OneToken(flow, cloud, 5, 40'000 * kMs).tokens, ElementsAre(5));
  EXPECT_TRUE(StandsInBy(flow, cloud, Expecting(50 * kMs), 40'000 * kMs, 42'000 * kMs))
      << "what the first one was expected to take says nothing of the next one";
}

TEST(AnswerFlow, WhatWasExpectedStillCountsWhileNobodyCanSay) {
  AnswerFlow flow(kStalls);
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  EXPECT_FALSE(StandsInBy(flow, cloud, Expecting({}), 0, 0)) << "not measured yet";
  EXPECT_FALSE(StandsInBy(flow, cloud, Expecting(100 * kMs), 25 * kMs, 25 * kMs));
  EXPECT_FALSE(StandsInBy(flow, cloud, {.usable = false}, 50 * kMs, 1975 * kMs));
  EXPECT_TRUE(StandsInBy(flow, cloud, {.usable = false}, 2000 * kMs, 2000 * kMs));
}

TEST(AnswerFlow, ARunThatGetsOnWithoutATokenDoesNotStall) {
  AnswerFlow flow(kStalls);
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  for (Nanos now = 0; now < 30'000 * kMs; now += 1000 * kMs) {
    (void)flow.OnWork(cloud, now);
    ASSERT_FALSE(StandsInBy(flow, cloud, Expecting(100 * kMs), now, now + 975 * kMs)) << now;
  }
  EXPECT_TRUE(StandsInBy(flow, cloud, Expecting(100 * kMs), 30'000 * kMs, 31'000 * kMs));
}

TEST(AnswerFlow, ACloudThatNobodyHasMeasuredHasLonger) {
  AnswerFlow flow(kStalls);
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  EXPECT_FALSE(StandsInBy(flow, cloud, Expecting({}), 0, 8975 * kMs));
  EXPECT_TRUE(StandsInBy(flow, cloud, Expecting({}), 9000 * kMs, 9000 * kMs));
}

TEST(AnswerFlow, AnEndThatCannotStandInIsAskedAgainAfterAWhileOnly) {
  AnswerFlow flow({.silence = 100 * kMs, .first_again = 1000 * kMs});
  (void)flow.Begin(Side::kCloud, kBetter, 0);
  const RunId end = StartedIn(flow.OnTime(kBetter, 100 * kMs), Side::kEnd);
  (void)flow.OnFailure(end, Error(Code::kUnavailable, "the queue is full"), 110 * kMs);
  for (Nanos now = 125 * kMs; now < 1110 * kMs; now += 25 * kMs) {
    ASSERT_THAT(flow.OnTime(kBetter, now).start, IsEmpty()) << now;
  }
  EXPECT_NE(StartedIn(flow.OnTime(kBetter, 1110 * kMs), Side::kEnd), 0u);
  EXPECT_EQ(flow.counts().silences, 2u);
}

TEST(AnswerFlow, AnEndThatOnlyStayedBehindStandsInAtOnce) {
  AnswerFlow flow({.silence = 100 * kMs, .first_again = 1000 * kMs, .patience = 2});
  const CloudView to_end{.usable = true, .better = Side::kEnd};
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  (void)flow.OnTokens(cloud, Tokens{1}, 0);
  const RunId end = StartedIn(flow.OnTime(to_end, 0), Side::kEnd);
  (void)flow.OnTokens(cloud, Tokens{2, 3, 4, 5}, 0);
  EXPECT_THAT(flow.OnTokens(end, Tokens{2, 3}, 0).stop, ElementsAre(end));
  EXPECT_THAT(flow.OnTime(to_end, 99 * kMs).start, IsEmpty());
  EXPECT_NE(StartedIn(flow.OnTime(to_end, 100 * kMs), Side::kEnd), 0u);
}

TEST(AnswerFlow, ACloudThatSaysAnotherTokenIsStoppedAndReported) {
  AnswerFlow flow;
  const RunId end = StartedIn(flow.Begin(Side::kEnd, kAway, 0), Side::kEnd);
  const RunId cloud = StartedIn(flow.OnTime(kBetter, 0), Side::kCloud);
  (void)flow.OnTokens(end, Tokens{1, 2}, 0);
  const FlowStep wrong = flow.OnTokens(cloud, Tokens{1, 9}, 0);
  EXPECT_TRUE(wrong.cloud_is_wrong);
  EXPECT_THAT(wrong.stop, ElementsAre(cloud));
  EXPECT_TRUE(wrong.failure.ok());
  EXPECT_THAT(OneToken(flow, end, 3).tokens, ElementsAre(3));
  EXPECT_EQ(flow.counts().wrong, 0u) << "nobody saw it";
}

TEST(AnswerFlow, AnAnswerWithAWrongTokenOfTheCloudFailsAndIsCounted) {
  AnswerFlow flow({.silence = 100 * kMs});
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  const RunId end = StartedIn(flow.OnTime({.usable = true, .better = Side::kEnd}, 0), Side::kEnd);
  (void)flow.OnTokens(cloud, Tokens{1, 2}, 0);
  const FlowStep seen = flow.OnTokens(end, Tokens{1, 9}, 0);
  EXPECT_TRUE(seen.cloud_is_wrong);
  EXPECT_EQ(seen.failure.code(), Code::kDataLoss);
  EXPECT_THAT(seen.failure.message(), HasSubstr("token 2"));
  EXPECT_EQ(seen.stop.size(), 2u);
  FlowCounts sum;
  sum += flow.counts();
  EXPECT_EQ(sum.wrong, 1u);
}

TEST(AnswerFlow, ACloudWhoseContextIsFullHasNotEndedTheAnswer) {
  AnswerFlow flow;
  const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
  (void)OneToken(flow, cloud, 5);
  const FlowStep full = flow.OnEnd(cloud, FinishReason::kContextFull, 0);
  EXPECT_EQ(full.finish, std::nullopt);
  EXPECT_NE(StartedIn(full, Side::kEnd), 0u);
  EXPECT_EQ(flow.counts().failures, 0u) << "it is well";
}

TEST(AnswerFlow, ACloudThatIsFullOrForOthersHasRefusedAndNotFailed) {
  using Counts = std::pair<std::uint64_t, std::uint64_t>;
  const auto counts_of = [](Code code) {
    AnswerFlow flow;
    const RunId cloud = StartedIn(flow.Begin(Side::kCloud, kBetter, 0), Side::kCloud);
    const FlowStep refused = flow.OnFailure(cloud, Error(code, "no"), 0);
    EXPECT_NE(StartedIn(refused, Side::kEnd), 0u);
    FlowCounts sum;
    sum += flow.counts();
    return Counts(sum.refusals, sum.failures);
  };
  for (const Code refusal : {Code::kResourceExhausted, Code::kFailedPrecondition}) {
    EXPECT_EQ(counts_of(refusal), Counts(1, 0)) << static_cast<int>(refusal);
  }
  for (const Code failure : {Code::kUnavailable, Code::kDeadlineExceeded, Code::kDataLoss}) {
    EXPECT_EQ(counts_of(failure), Counts(0, 1)) << static_cast<int>(failure);
  }
}

TEST(AnswerFlow, AnEndThatCannotGivesTheAnswerToTheCloudUnlessThatCannotEither) {
  AnswerFlow flow;
  const Status full = Error(Code::kUnavailable, "the queue is full");
  const RunId end = StartedIn(flow.Begin(Side::kEnd, kBetter, 0), Side::kEnd);
  const FlowStep moved = flow.OnFailure(end, full, 0);
  const RunId cloud = StartedIn(moved, Side::kCloud);
  ASSERT_NE(cloud, 0u);
  const RunId again = StartedIn(flow.OnFailure(cloud, DataLoss("cut"), 0), Side::kEnd);
  const FlowStep over = flow.OnFailure(again, full, 0);
  EXPECT_EQ(over.failure, full);
  EXPECT_THAT(over.start, IsEmpty());
}

TEST(AnswerFlow, ARequestThatCanNeverBeAnsweredIsNotSentToTheCloudAsWell) {
  AnswerFlow flow;
  const RunId end = StartedIn(flow.Begin(Side::kEnd, kBetter, 0), Side::kEnd);
  const FlowStep over = flow.OnFailure(end, InvalidArgument("no such grammar"), 0);
  EXPECT_EQ(over.failure.code(), Code::kInvalidArgument);
}

TEST(AnswerFlow, WhoEndsItStopsAllThatRuns) {
  AnswerFlow flow;
  const RunId end = StartedIn(flow.Begin(Side::kEnd, kAway, 0), Side::kEnd);
  (void)OneToken(flow, end, 1);
  const RunId cloud = StartedIn(flow.OnTime(kBetter, 0), Side::kCloud);
  EXPECT_THAT(flow.End().stop, ElementsAre(end, cloud));
  EXPECT_THAT(flow.OnTokens(end, Tokens{2}, 0).tokens, IsEmpty());
}

}  // namespace
}  // namespace troupe
