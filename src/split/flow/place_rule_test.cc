#include "split/flow/place_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::DoubleEq;
using testing::HasSubstr;

constexpr AnswerTask kTask{.read = 100, .tokens = 50};
constexpr PlaceCosts kWeak{.read_seconds = 0.01, .token_seconds = 0.1};
constexpr PlaceCosts kStrong{.link_seconds = 0.05, .read_seconds = 0.001, .token_seconds = 0.02};

PlaceChoice Choose(std::string_view rule, const PlaceFacts& facts,
                   std::optional<Side> now = std::nullopt, const AnswerTask& task = kTask) {
  const auto under_way = now ? std::optional(UnderWay{.place = *now}) : std::nullopt;
  return MakePlaceRule(rule).value()->Choose(task, facts, under_way);
}

TEST(PlaceRule, AnAnswerGoesWhereItIsExpectedToEndSooner) {
  const PlaceChoice strong = Choose("auto", {.end = kWeak, .cloud = kStrong});
  EXPECT_EQ(strong.place, Side::kCloud);
  EXPECT_THAT(strong.why, HasSubstr("cloud 1.15 s, end 6.00 s"));
  PlaceCosts loaded = kStrong;
  loaded.wait_seconds = 6;
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = loaded}).place, Side::kEnd);
  PlaceCosts far = kStrong;
  far.link_seconds = 2;
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = far}, {}, {.read = 1, .tokens = 1}).place,
            Side::kEnd);
}

TEST(PlaceRule, OnlyWhatAPlaceHasNotKeptIsReadThere) {
  const PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  AnswerTask turn{.read = 1000, .tokens = 5};
  EXPECT_EQ(Choose("auto", facts, {}, turn).place, Side::kCloud);
  turn.kept[0] = 960;
  EXPECT_EQ(Choose("auto", facts, {}, turn).place, Side::kEnd);
  EXPECT_THAT(Choose("auto", facts, {}, turn).why, HasSubstr("cloud 1.15 s, end 0.90 s"));
  turn.kept[1] = 960;
  EXPECT_EQ(Choose("auto", facts, {}, turn).place, Side::kCloud);
  turn.kept[0] = 5000;
  EXPECT_EQ(turn.In(Side::kEnd).read, 1u) << "the last token is always read";
  EXPECT_EQ(turn.In(Side::kCloud).read, 40u);
  EXPECT_THAT(Choose("route-aware", facts, {}, turn).why, HasSubstr("end's load 0.51 s"));
}

TEST(PlaceRule, WhatCutsTookOfWhatWasPredictedCounts) {
  const AnswerTask one{.read = 256, .tokens = 1, .one_token = true};
  PlaceFacts facts{
      .end = kWeak, .cloud = kWeak, .cut = CutPlan{.layer = 2, .chunk = 64, .seconds = 1}};
  EXPECT_DOUBLE_EQ(Choose("auto", facts, {}, one).seconds, 1);
  facts.cut_factor = 1.7;
  EXPECT_DOUBLE_EQ(Choose("auto", facts, {}, one).seconds, 1.7);
  facts.cut_factor = 3;
  EXPECT_FALSE(Choose("auto", facts, {}, one).cut);
  EXPECT_DOUBLE_EQ(Choose("auto", facts, {}, one).seconds, 2.66);
  EXPECT_DOUBLE_EQ(Choose("auto", facts, {}, one).token_seconds, 0.1);
}

TEST(PlaceRule, AnAnswerUnderWayIsMovedOnlyForAClearGain) {
  PlaceCosts almost = kWeak;
  almost.token_seconds = 0.075;
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = almost}).place, Side::kCloud);
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = almost}, Side::kEnd).place, Side::kEnd)
      << "the cloud would have to read 100 tokens first";
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = kStrong}, Side::kEnd).place, Side::kCloud);
}

TEST(PlaceRule, ANewAnswerBeginsAtTheEndOnlyForAGain) {
  const AnswerTask task{.read = 100, .tokens = 1};  // 1.1 s at the end
  const auto place = [&](double cloud_seconds) {
    const PlaceCosts cloud{.wait_seconds = cloud_seconds};
    return Choose("auto", {.end = kWeak, .cloud = cloud}, {}, task).place;
  };
  EXPECT_EQ(place(1.0), Side::kCloud);
  EXPECT_EQ(place(1.2), Side::kCloud) << "what waits there can still move, and is about as soon";
  EXPECT_EQ(place(1.22), Side::kEnd);
}

TEST(PlaceRule, WhatTheEndHasReadIsReadAgainInTheCloudOnlyForAGainThatPaysForIt) {
  const AnswerTask task{.read = 100, .tokens = 1};  // 1.1 s at the end, 0.17 s in the cloud
  const PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  const auto place = [&](const UnderWay& now) {
    return MakePlaceRule("auto").value()->Choose(task, facts, now).place;
  };
  EXPECT_EQ(place({.place = Side::kEnd, .to_read = 90}), Side::kCloud);
  EXPECT_EQ(place({.place = Side::kEnd, .to_read = 50}), Side::kCloud) << "0.6 s, 0.5 s done";
  EXPECT_EQ(place({.place = Side::kEnd, .to_read = 40}), Side::kEnd) << "0.5 s, 0.6 s done";
  EXPECT_EQ(place({.place = Side::kEnd, .wait_seconds = 0.1, .to_read = 40, .waits = true}),
            Side::kCloud)
      << "it has begun nothing";
  AnswerTask kept = task;
  kept.kept[0] = 60;
  EXPECT_EQ(MakePlaceRule("auto")
                .value()
                ->Choose(kept, facts, UnderWay{.place = Side::kEnd, .to_read = 40})
                .place,
            Side::kCloud)
      << "an earlier answer has read the rest";
  const AnswerTask long_one{.read = 100, .tokens = 50};  // 5 s are left of it
  EXPECT_EQ(
      MakePlaceRule("auto").value()->Choose(long_one, facts, UnderWay{.place = Side::kEnd}).place,
      Side::kCloud);
}

TEST(PlaceRule, AnAnswerThatWaitsIsMovedWhereItIsReadSooner) {
  const auto place = [](const UnderWay& now) {
    return MakePlaceRule("auto")
        .value()
        ->Choose(kTask, {.end = kWeak, .cloud = kStrong}, now)
        .place;  // 6 s at the end, 1.15 s in the cloud
  };
  EXPECT_EQ(place({.place = Side::kCloud, .wait_seconds = 6.2, .to_read = 100}), Side::kCloud);
  EXPECT_EQ(place({.place = Side::kCloud, .wait_seconds = 6.5, .to_read = 100}), Side::kEnd);
  EXPECT_EQ(place({.place = Side::kCloud, .wait_seconds = 6.5}), Side::kEnd);
  const auto weak = [](const UnderWay& now) {
    return MakePlaceRule("auto")
        .value()
        ->Choose({.read = 100, .tokens = 1}, {.end = kWeak, .cloud = kStrong}, now)
        .place;  // 1.1 s at the end, 0.17 s in the cloud
  };
  EXPECT_EQ(weak({.place = Side::kEnd}), Side::kEnd) << "it is about to have its token";
  EXPECT_EQ(weak({.place = Side::kEnd, .to_read = 8}), Side::kEnd);
  EXPECT_EQ(weak({.place = Side::kEnd, .to_read = 100}), Side::kCloud);
}

TEST(PlaceRule, TheStrongMachineIsTriedFirstUntilBothHaveBeenMeasured) {
  EXPECT_EQ(Choose("auto", {.end = kWeak, .cloud = {}}).place, Side::kCloud);
  EXPECT_EQ(Choose("auto", {.end = {}, .cloud = kStrong}, Side::kEnd).place, Side::kEnd);
}

TEST(PlaceRule, WhoWasToldOnePlaceChoosesNoOther) {
  EXPECT_EQ(Choose("end", {.end = kWeak, .cloud = kStrong}, Side::kCloud).place, Side::kEnd);
  EXPECT_EQ(Choose("cloud", {.end = kStrong, .cloud = kWeak}).place, Side::kCloud);
  EXPECT_FALSE(MakePlaceRule("best").ok());
}

TEST(PlaceRule, APromptIsCutWhereThatIsExpectedToBeSooner) {
  const AnswerTask task{.read = 256, .tokens = 1};
  PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  facts.cloud->wait_seconds = 2;  // 2.3 s there, 2.7 s at the end
  facts.cut = CutPlan{.layer = 4, .chunk = 64, .seconds = 1.5};
  const PlaceChoice cut = Choose("auto", facts, {}, task);
  EXPECT_EQ(cut.cut, facts.cut);
  EXPECT_EQ(cut.place, Side::kCloud);
  EXPECT_THAT(cut.why, HasSubstr("cut before layer 4, 64 tokens at a time, 1.500 s"));
  EXPECT_FALSE(Choose("auto", facts, Side::kCloud, task).cut) << "it is under way";
  facts.cut->seconds = 2.29;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut) << "for hardly any gain";
  facts.cut->seconds = 1.6;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut)
      << "if it took half as long again it were later";
  facts.cut->seconds = 2.29;
  facts.cuts_are_new = true;
  facts.cut_factor = 2;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut) << "nobody waits for what is only tried";
  facts.cloud->wait_seconds = 0;
  const PlaceChoice tried = Choose("auto", facts, {}, task);
  EXPECT_TRUE(tried.cut) << "what it takes is to be measured";
  EXPECT_EQ(tried.seconds, 2 * 2.29) << "by which the next ones are judged";
  EXPECT_EQ(tried.factor, 2);
  facts.end->wait_seconds = 1;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut);
}

TEST(PlaceRule, ALongerAnswerBehindACutCountsItsTokensInTheCloud) {
  const AnswerTask task{.read = 256, .tokens = 100};
  PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  facts.cloud->wait_seconds = 2;
  const double whole = facts.cloud->FinishSeconds(task);
  const double tokens = 100 * kStrong.token_seconds;
  facts.cut = CutPlan{.layer = 4, .chunk = 64, .seconds = (whole - tokens) / 1.6, .prefix = 240};
  EXPECT_EQ(Choose("auto", facts, {}, task).cut, facts.cut);
  EXPECT_THAT(Choose("auto", facts, {}, task).why, HasSubstr("to its first token"));
  facts.cut->seconds = whole - 0.5;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut) << "with its tokens it would be later";
  facts.cut->seconds = 0.001;
  facts.cuts_are_new = true;
  EXPECT_FALSE(Choose("auto", facts, {}, task).cut) << "what nobody has measured is not tried here";
  facts.drafts = kStrong;
  facts.drafts->wait_seconds = 2;
  facts.drafts->token_seconds = kStrong.token_seconds / 2;
  facts.cuts_are_new = false;
  EXPECT_TRUE(Choose("auto", facts, {}, task).drafts) << "the cloud checks guesses behind a cut";
  EXPECT_TRUE(Choose("layers", facts, {}, task).drafts);
}

TEST(PlaceRule, WhoWasToldToCutCutsWhatCanBeCut) {
  PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  facts.cut = CutPlan{.layer = 4, .chunk = 64, .seconds = 100};
  EXPECT_TRUE(Choose("layers", facts).cut);
  facts.cut.reset();
  EXPECT_EQ(Choose("layers", facts).place, Side::kCloud);
  EXPECT_FALSE(Choose("layers", facts).cut);
}

TEST(PlaceRule, TheEndDraftsForTheCloudWhereThatIsExpectedToBeSooner) {
  PlaceCosts loaded = kStrong;
  loaded.token_seconds = 0.06;
  PlaceCosts drafts = loaded;
  drafts.token_seconds = 0.03;
  const PlaceChoice with = Choose("auto", {.end = kWeak, .cloud = loaded, .drafts = drafts});
  EXPECT_TRUE(with.drafts);
  EXPECT_EQ(with.place, Side::kCloud);
  EXPECT_THAT(with.why, HasSubstr("cloud 3.15 s, with drafts 1.65 s, end 6.00 s"));
  drafts.token_seconds = 0.058;
  EXPECT_FALSE(Choose("auto", {.end = kWeak, .cloud = loaded, .drafts = drafts}).drafts)
      << "hardly sooner is not worth the end's work";
  drafts.token_seconds = 0.01;
  PlaceCosts fast = kWeak;
  fast.token_seconds = fast.read_seconds = 0.0001;
  const PlaceChoice end = Choose("auto", {.end = fast, .cloud = loaded, .drafts = drafts});
  EXPECT_EQ(end.place, Side::kEnd);
  EXPECT_FALSE(end.drafts);
  EXPECT_FALSE(Choose("auto", {.end = kWeak, .cloud = loaded}).drafts) << "nobody can say";
}

TEST(PlaceRule, DraftsThatNobodyHasMeasuredAreTriedBesideAnAnswerInTheCloud) {
  PlaceFacts facts{.end = {}, .cloud = kStrong, .drafts_are_new = true};
  EXPECT_TRUE(Choose("auto", facts).drafts);
  EXPECT_FALSE(Choose("auto", facts, Side::kEnd).drafts);
  facts.end = kWeak;
  EXPECT_TRUE(Choose("auto", facts).drafts);
  EXPECT_FALSE(Choose("cloud", facts).drafts);
}

TEST(PlaceRule, WhoWasToldToDraftDoesSoWhateverIsExpected) {
  const PlaceChoice choice = Choose("drafts", {.end = kStrong, .cloud = kWeak});
  EXPECT_EQ(choice.place, Side::kCloud);
  EXPECT_TRUE(choice.drafts);
  EXPECT_EQ(MakePlaceRule("drafts").value()->Name(), "drafts");
}

TEST(PlaceRule, ThePapersRuleKeepsWhatIsMuchComputingForItsLinkAndFitsTheEnd) {
  const PlaceFacts facts{.end = kWeak, .cloud = kStrong};
  EXPECT_DOUBLE_EQ(RoutePriority(kTask, kWeak, kStrong, 0), 6 / 0.05);
  const auto rule = [&](double beta, double end_seconds) {
    return MakePlaceRule("route-aware", {.beta = beta, .end_seconds = end_seconds, .epsilon = 0})
        .value()
        ->Choose(kTask, facts, std::nullopt)
        .place;
  };
  EXPECT_EQ(rule(120, 6), Side::kEnd) << "both limits are met exactly";
  EXPECT_EQ(rule(121, 6), Side::kCloud);
  EXPECT_EQ(rule(120, 5.9), Side::kCloud);
}

TEST(PlaceCosts, SayWhatItCostsToBeAlone) {
  EXPECT_EQ(
      CostOfBeingAlone(PlaceCosts{.token_seconds = 0.0114}, PlaceCosts{.token_seconds = 0.00131}),
      "11 ms a token here in place of 1.3 ms");
  EXPECT_EQ(CostOfBeingAlone(PlaceCosts{.token_seconds = 1.234}, kStrong),
            "1234 ms a token here in place of 20 ms");
  EXPECT_EQ(CostOfBeingAlone(kWeak, {}), "");
  EXPECT_EQ(CostOfBeingAlone({}, kStrong), "");
}

TEST(PlaceMeter, AnswersSayWhatTheirTokensTookAndThePlaceWhatReadingTakes) {
  PlaceMeter meter;
  EXPECT_EQ(meter.Costs(0), std::nullopt);
  meter.OnTold(0.5, 0.25);
  EXPECT_THAT(meter.Costs(3).value().FinishSeconds({.read = 2, .tokens = 4}), DoubleEq(5.0));
  meter.OnAnswer({.tokens = 4, .token_seconds = 2, .link_seconds = 0.125});
  EXPECT_EQ(meter.Costs(0)->link_seconds, 0.125);
  meter.OnTold(0.75, 0);
  meter.OnAnswer({.tokens = 1, .token_seconds = 0.9});
  EXPECT_THAT(meter.Costs(0)->read_seconds, DoubleEq(0.75));
  meter.OnTold(0, 0);
  EXPECT_THAT(meter.Costs(0)->read_seconds, DoubleEq(0.75)) << "it said nothing of that";
}

TEST(PlaceMeter, WherePlacesSayNothingOfTokensAnswersDo) {
  PlaceMeter meter;
  meter.OnTold(0.5, 0);
  EXPECT_EQ(meter.Costs(0), std::nullopt);
  meter.OnAnswer({.tokens = 4, .token_seconds = 2});
  EXPECT_EQ(meter.Costs(0)->token_seconds, 0.5);
  meter.OnAnswer({.tokens = 1, .token_seconds = 0.9});
  EXPECT_THAT(meter.Costs(0)->token_seconds, DoubleEq(0.6));
}

TEST(PlaceMeter, APlaceThatHasOthersNowIsNotAsFastAsItWas) {
  PlaceMeter meter;
  meter.OnTold(0.001, 0.01);
  for (int i = 0; i < 50; ++i) {
    meter.OnAnswer({.tokens = 100, .token_seconds = 1.2, .told_token_seconds = 0.01});
  }
  EXPECT_NEAR(meter.Costs(0)->token_seconds, 0.012, 1e-9);
  meter.OnTold(0.001, 0.08);
  EXPECT_NEAR(meter.Costs(0)->token_seconds, 0.096, 1e-9) << "before any answer has shown it";
  meter.OnTold(0.001, 0.01);
  EXPECT_NEAR(meter.Costs(0)->token_seconds, 0.012, 1e-9) << "nor slow when they have gone";
  meter.OnAnswer({.tokens = 100, .token_seconds = 1e5, .told_token_seconds = 0.01});
  EXPECT_LT(meter.Costs(0)->token_seconds, 0.02) << "one answer is not believed for ever";
}

TEST(PlaceMeter, AnAnswerOfAMomentDoesNotContradictItsPlace) {
  PlaceMeter meter;
  meter.OnTold(0.001, 0.001);
  meter.OnAnswer({.tokens = 30, .token_seconds = 0.002, .told_token_seconds = 0.001});
  meter.OnAnswer({.tokens = 30, .token_seconds = 0.2, .told_token_seconds = 0.001});
  EXPECT_EQ(meter.Costs(0)->token_seconds, 0.001);
}

TEST(PlaceRule, AnAnswerLeavesACloudWhereItsTokensTakeLongerThanWasExpected) {
  const PlaceFacts facts{.end = kWeak, .cloud = kStrong};  // 6 s, and 1.15 s
  const auto place = [&](const UnderWay& now) {
    return MakePlaceRule("auto").value()->Choose(kTask, facts, now).place;
  };
  EXPECT_EQ(place({.place = Side::kCloud, .token_seconds = 0.02}), Side::kCloud);
  EXPECT_EQ(place({.place = Side::kCloud, .token_seconds = 0.14}), Side::kCloud) << "7 s of 6";
  EXPECT_EQ(place({.place = Side::kCloud, .token_seconds = 0.16}), Side::kEnd);
  EXPECT_EQ(place({.place = Side::kCloud, .token_seconds = 0.16, .drafts = true}), Side::kEnd);
  PlaceFacts drafts = facts;
  drafts.drafts = kStrong;
  drafts.drafts->token_seconds = 0.01;
  const auto with = [&](const UnderWay& now) {
    return MakePlaceRule("auto").value()->Choose(kTask, drafts, now);
  };
  EXPECT_TRUE(with({.place = Side::kCloud, .token_seconds = 0.04}).drafts)
      << "what is twice as slow as expected is so with drafts";
  EXPECT_DOUBLE_EQ(with({.place = Side::kCloud, .token_seconds = 0.04}).seconds, 50 * 0.02);
  EXPECT_TRUE(with({.place = Side::kCloud, .token_seconds = 0.015, .drafts = true}).drafts);
  EXPECT_FALSE(with({.place = Side::kCloud, .token_seconds = 0.02, .drafts = true}).drafts)
      << "they gain nothing";
}

}  // namespace
}  // namespace troupe
