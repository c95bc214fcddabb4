#include "expert/flow/miss_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

WaitingMiss MissOf(std::uint32_t expert, std::uint32_t tokens,
                   ExpertCopy least = ExpertCopy::kFull) {
  WaitingMiss miss{.event = {}, .least = least, .load = least};
  miss.event.id = {0, expert};
  miss.event.tokens = tokens;
  return miss;
}

WaitingMiss Joined(std::uint32_t expert, std::uint32_t tokens) {
  WaitingMiss miss = MissOf(expert, tokens);
  miss.event.joined = true;
  miss.left = 1_B;
  return miss;
}

// A full copy takes two seconds, a low one takes one.
const AnswerCosts kCosts = {.full = 2_B, .low = 1_B, .medium = {.bytes_per_second = 1}};

class MissAnswersTest : public testing::Test {
 protected:
  void Decide(std::vector<WaitingMiss> misses, const AnswerCosts& costs,
              MissAnswerRules rules = {}) {
    demand_.Reset();
    demand_.waiting = std::move(misses);
    answers_ = std::make_unique<MissAnswers>(rules);
    answers_->Decide(demand_, costs);
  }
  std::vector<MissAnswer> Answers() const {
    std::vector<MissAnswer> answers;
    for (const WaitingMiss& miss : demand_.waiting) answers.push_back(miss.event.answer);
    return answers;
  }
  std::vector<ExpertCopy> Copies() const {
    std::vector<ExpertCopy> copies;
    for (const WaitingMiss& miss : demand_.waiting) copies.push_back(miss.load);
    return copies;
  }

  OpenDemand demand_;
  std::unique_ptr<MissAnswers> answers_;
};

TEST_F(MissAnswersTest, LoadsBeginWithTheMostRowsAndThoseUnderWayAreWaitedFor) {
  Decide({MissOf(0, 1), Joined(1, 1), MissOf(2, 5)}, kCosts);
  EXPECT_THAT(demand_.unplaced, ElementsAre(ExpertId{0, 2}, ExpertId{0, 0}));
  EXPECT_THAT(Answers(), ElementsAre(MissAnswer::kWait, MissAnswer::kLoad, MissAnswer::kLoad));
  EXPECT_EQ(answers_->decided().waited, 1u);
  EXPECT_EQ(answers_->decided().loaded, 2u);
}

TEST_F(MissAnswersTest, WhereDecisionsMustRepeatTheOrderIsTheSameWhateverIsUnderWay) {
  const MissAnswerRules repeatable = {.repeatable = true};
  Decide({MissOf(0, 1), Joined(1, 1), MissOf(2, 5)}, kCosts, repeatable);
  std::vector<std::uint32_t> order;
  for (const WaitingMiss& miss : demand_.waiting) order.push_back(miss.event.id.expert);
  EXPECT_THAT(order, ElementsAre(2, 0, 1));
  EXPECT_THAT(Answers(), ElementsAre(MissAnswer::kLoad, MissAnswer::kLoad, MissAnswer::kWait));
}

TEST_F(MissAnswersTest, AMissIsExpectedOnceItsLoadHasPassedTheMediumAndItIsComputed) {
  AnswerCosts costs = kCosts;
  costs.medium.queued = 3_B;
  costs.local.first_row_seconds = 0.5;
  Decide({MissOf(0, 1)}, costs);
  EXPECT_DOUBLE_EQ(demand_.waiting[0].event.expected_seconds, 3 + 2 + 0.5);
  EXPECT_EQ(demand_.waiting[0].event.why, MissReason::kOnlyAnswer);
}

TEST_F(MissAnswersTest, WhatIsQueuedIsNotCountedTwiceWhereAMissJoinedIt) {
  AnswerCosts costs = kCosts;
  costs.medium.queued = 1_B;  // the load that 1 joins
  Decide({MissOf(0, 1), Joined(1, 1)}, costs);
  EXPECT_DOUBLE_EQ(demand_.waiting[0].event.expected_seconds, 1);
  EXPECT_DOUBLE_EQ(demand_.waiting[1].event.expected_seconds, 1 + 2);
}

TEST_F(MissAnswersTest, ALowCopyThatMayAnswerIsLoadedWhereItIsSooner) {
  Decide({MissOf(0, 1, ExpertCopy::kLow)}, kCosts);
  EXPECT_THAT(Answers(), ElementsAre(MissAnswer::kLoadLow));
  EXPECT_THAT(Copies(), ElementsAre(ExpertCopy::kLow));
  EXPECT_EQ(answers_->decided().loaded_low, 1u);
}

TEST_F(MissAnswersTest, AFullCopyIsLoadedWhereTheLowOneWouldNotBeSooner) {
  AnswerCosts costs = kCosts;
  costs.local.busy_seconds = 10;  // with residents: the load is hidden behind them
  Decide({MissOf(0, 1, ExpertCopy::kLow)}, costs);
  EXPECT_THAT(Answers(), ElementsAre(MissAnswer::kLoad));
  EXPECT_THAT(Copies(), ElementsAre(ExpertCopy::kFull));
  EXPECT_EQ(demand_.waiting[0].event.why, MissReason::kNoBetter);
}

TEST_F(MissAnswersTest, AnExactMissIsNeverLoadedInItsLowCopy) {
  Decide({MissOf(0, 1), MissOf(1, 1, ExpertCopy::kLow)}, kCosts);
  for (const WaitingMiss& miss : demand_.waiting) {
    EXPECT_EQ(miss.load, miss.event.id.expert == 0 ? ExpertCopy::kFull : ExpertCopy::kLow);
  }
}

TEST_F(MissAnswersTest, LowCopiesAreLoadedAsAskedWhereNothingWasMeasuredOrDecisionsMustRepeat) {
  AnswerCosts costs = kCosts;
  costs.local.busy_seconds = 10;
  Decide({MissOf(0, 1, ExpertCopy::kLow)}, costs, {.repeatable = true});
  EXPECT_THAT(Copies(), ElementsAre(ExpertCopy::kLow));
  costs.medium = {};
  Decide({MissOf(0, 1, ExpertCopy::kLow)}, costs);
  EXPECT_THAT(Copies(), ElementsAre(ExpertCopy::kLow));
  EXPECT_EQ(answers_->decided().loaded_low, 1u);
}

TEST_F(MissAnswersTest, APlaceComputesWhatIsDoneThereSoonerAndTheBestAreLoaded) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 3}};
  AnswerCosts costs = kCosts;
  costs.places = places;
  Decide({MissOf(0, 1), MissOf(1, 2), MissOf(2, 3)}, costs);
  EXPECT_THAT(demand_.unplaced, ElementsAre(ExpertId{0, 2}, ExpertId{0, 1}));
  EXPECT_THAT(demand_.elsewhere,
              ElementsAre(AnsweredElsewhere{.expert = 0, .place = 0, .load_seconds = 2}));
  EXPECT_EQ(answers_->decided().elsewhere, 1u);
  EXPECT_EQ(answers_->decided().loaded, 2u);
}

TEST_F(MissAnswersTest, WhatLoadingWouldTakeIsToldWithWhatIsAskedElsewhere) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  AnswerCosts costs = kCosts;
  costs.places = places;
  costs.medium = {.latency_seconds = 0.5, .bytes_per_second = 4, .queued = 6_B};
  Decide({MissOf(0, 1)}, costs);
  EXPECT_THAT(demand_.elsewhere,
              ElementsAre(AnsweredElsewhere{.expert = 0, .place = 0, .load_seconds = 2.5}));
}

TEST_F(MissAnswersTest, WhereWeightsCountTheHeaviestAreLoaded) {
  const std::vector<Place> places = {{.name = "a second lane", .expert_seconds = 2}};
  AnswerCosts costs = kCosts;
  costs.places = places;
  std::vector<WaitingMiss> misses = {MissOf(0, 1), MissOf(1, 9)};
  misses[0].weight = 0.7;
  misses[1].weight = 0.3;
  Decide(std::move(misses), costs, {.order = MissOrder::kWeight});
  EXPECT_THAT(demand_.unplaced, ElementsAre(ExpertId{0, 0}));
  EXPECT_THAT(demand_.elsewhere,
              ElementsAre(AnsweredElsewhere{.expert = 1, .place = 0, .load_seconds = 2}));
}

TEST_F(MissAnswersTest, ADemandWithoutMissesIsLeftAsItIs) {
  Decide({}, kCosts);
  EXPECT_THAT(demand_.unplaced, IsEmpty());
  EXPECT_EQ(answers_->decided().loaded, 0u);
}

}  // namespace
}  // namespace troupe
