#include "runtime/offloaded_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "expert/flow/memory_plan.h"
#include "runtime/offloaded_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(OffloadedExpertsTest, ResidentExpertsAreGivenAtOnceAndTheOthersAsTheyArrive) {
  Ask(0, {0, 1});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
  reader_->Hold(true);
  Ask(0, {0, 2});
  EXPECT_THAT(Take(false), ElementsAre(0));
  EXPECT_THAT(Take(true), ElementsAre(2));
}

TEST_F(OffloadedExpertsTest, MoreExpertsThanSlotsPassThroughThem) {
  Open(2);
  Ask(1, {0, 1, 2, 3});
  EXPECT_THAT(TakeAll(4), UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(experts_->usage().misses, 4u);
  EXPECT_EQ(experts_->report().cache.evictions, 2u);
}

TEST_F(OffloadedExpertsTest, AnExpertGivenOutIsNotOverwrittenBeforeTheNextCall) {
  Open(2);
  Ask(0, {0, 1});
  TakeAll(2);
  Ask(0, {0, 2, 3});  // 0 is resident and must survive both loads until it was used
  EXPECT_THAT(TakeAll(3), UnorderedElementsAre(0, 2, 3));
}

TEST_F(OffloadedExpertsTest, CountsHitsMissesBytesAndReads) {
  Ask(0, {0, 1});
  TakeAll(2);
  Ask(0, {0, 1, 2});
  TakeAll(3);
  const ExpertUsage usage = experts_->usage();
  EXPECT_EQ(usage.hits, 2u);
  EXPECT_EQ(usage.misses, 3u);
  EXPECT_EQ(usage.bytes_read, reader_->bytes_read());
  EXPECT_EQ(usage.reads, reader_->submitted());
}

TEST_F(OffloadedExpertsTest, CountsAUseForEachTokenOfAQuestion) {
  const ExpertDemand three[] = {{.expert = 0, .tokens = 3}, {.expert = 1, .tokens = 1}};
  experts_->Ask({.layer = 0, .demands = three});
  TakeAll(2);
  const ExpertUsage before = experts_->usage();
  EXPECT_EQ(before.use_hits, 0u);
  EXPECT_EQ(before.use_misses, 4u);
  const ExpertDemand two[] = {{.expert = 0, .tokens = 2}, {.expert = 2, .tokens = 5}};
  experts_->Ask({.layer = 0, .demands = two});
  TakeAll(2);
  const ExpertUsage since = experts_->usage().Since(before);
  EXPECT_EQ(since.use_hits, 2u);
  EXPECT_EQ(since.use_misses, 5u);
  EXPECT_EQ(since.hits, 1u);
}

TEST_F(OffloadedExpertsTest, AFailedLoadFailsTheCallAndLeavesTheRestUsable) {
  bool broken = true;
  reader_->SetScript([&](const ReadRequest&) {
    return broken ? FakeReader::Fault::kError : FakeReader::Fault::kNone;
  });
  Ask(0, {0, 1});
  Result<std::span<const ReadyExpert>> taken = experts_->Take(false);
  if (taken.ok()) taken = experts_->Take(true);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.status().message(), HasSubstr("layer 0, expert"));
  broken = false;
  Ask(0, {0, 1});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 1));
}

TEST_F(OffloadedExpertsTest, AQuestionCutShortLeavesLoadsThatALaterOneJoins) {
  reader_->Hold(true);
  Ask(0, {0, 1});
  EXPECT_THAT(Take(false), IsEmpty());
  Ask(0, {1, 2});  // nobody took 0 and 1
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(1, 2));
  EXPECT_EQ(experts_->report().cache.joined, 1u);
  EXPECT_EQ(experts_->loader().stats().loads + experts_->loader().under_way(), 3u);
}

// Guesses one expert of the next layer.
class Always final : public Predictor {
 public:
  std::string_view name() const override { return "always"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    return {{.expert = 3, .weight = 1, .expected = true}};
  }
};

TEST_F(OffloadedExpertsTest, APrefetchThatEndsBetweenTwoLayersIsThereForTheSecond) {
  Open(3, std::make_unique<Always>());
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  for (int i = 0; i < 10; ++i) experts_->Advance();
  Ask(1, {3});
  EXPECT_THAT(Take(false), ElementsAre(3));
  EXPECT_EQ(experts_->usage().prefetch_useful, 1u);
}

TEST_F(OffloadedExpertsTest, APrefetchStillOnItsWayIsJoined) {
  Open(3, std::make_unique<Always>());
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  reader_->Hold(true);
  Ask(1, {3});
  EXPECT_THAT(TakeAll(1), ElementsAre(3));
  EXPECT_EQ(experts_->usage().prefetch_useful + experts_->usage().prefetch_late, 1u);
}

TEST_F(OffloadedExpertsTest, WhatAPromptReadsAheadIsCalledOffWhereTheLayerAsksForOthers) {
  Open(3, std::make_unique<Always>(), 2);
  experts_->OnPassBegins(
      OneGroup(0, Phase::kPrompt, 8));  // enough rows to make every guess nearly certain
  reader_->Hold(true);
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  EXPECT_THAT(Take(false), IsEmpty());  // two of its three reads are under way
  EXPECT_EQ(experts_->usage().prefetches, 1u);
  Ask(1, {2});
  EXPECT_EQ(experts_->usage().prefetch_cancelled, 1u);
  EXPECT_EQ(experts_->loader().stats().cancelled, 1u);
  reader_->Hold(false);
  EXPECT_THAT(TakeAll(1), ElementsAre(2));
}

TEST_F(OffloadedExpertsTest, InOrderOneThatHoldsTheOnlySlotGoesBeforeItsTurn) {
  Open(1, std::make_unique<Always>(), 16, {}, /*in_order=*/true);
  Ask(0, {0});
  experts_->OnForecast(1, 1, {});
  TakeAll(1);
  reader_->Hold(true);
  EXPECT_THAT(Take(false), IsEmpty());  // lets go of the slot, which is read ahead into
  Ask(1, {1, 3});
  EXPECT_EQ(experts_->usage().misses, 3u);
  EXPECT_THAT(TakeAll(2), ElementsAre(3, 1));
  EXPECT_EQ(experts_->given_out_of_turn(), 1u);
}

// Predicts that few tokens will want expert 3.
class FewWant3 final : public Predictor {
 public:
  std::string_view name() const override { return "few want 3"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    return {{.expert = 0, .weight = 9, .expected = true},
            {.expert = 3, .weight = 1, .expected = true}};
  }
};

TEST_F(OffloadedExpertsTest, OneReadAheadInItsLowCopyThatManyWantIsReadAgain) {
  Open(4, std::make_unique<FewWant3>(), 16, {.prefill_share = 0.3});
  experts_->OnPassBegins(OneGroup(0, Phase::kPrompt, 8));
  Ask(0, {1});
  TakeAll(1);
  reader_->Hold(true);
  experts_->OnForecast(1, 1, {});
  EXPECT_THAT(Take(false), IsEmpty());  // both are on their way
  EXPECT_EQ(experts_->usage().prefetches, 2u);
  layer_ = 1;
  const std::vector<ExpertDemand> demands = {{.expert = 3, .tokens = 7},
                                             {.expert = 0, .tokens = 1}};
  experts_->Ask({.layer = 1, .demands = demands});
  EXPECT_THAT(TakeAll(2), UnorderedElementsAre(0, 3));  // and 3 has the bytes of its full copy
  EXPECT_EQ(experts_->begun_anew(), 1u);
}

TEST_F(OffloadedExpertsTest, TellsWhereTheTimeOfAPassGoesWhileSomebodyWatches) {
  PassTimes times(4);
  experts_->set_times(&times);
  experts_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  reader_->Hold(true);
  Ask(0, {0});
  TakeAll(1);
  Ask(1, {3});
  TakeAll(1);
  experts_->SettleUsage();
  ASSERT_EQ(times.passes().size(), 1u);
  const TimedPass& pass = times.passes().front();
  ASSERT_EQ(pass.layers.size(), 2u);
  ASSERT_EQ(pass.layers[1].misses.size(), 1u);
  EXPECT_EQ(pass.layers[1].misses[0].id, (ExpertId{1, 3}));
  EXPECT_EQ(pass.layers[1].misses[0].foresight.why(), NotEarlier::kNothingAhead);
  std::uint64_t bytes = 0;
  for (const ReadSpan& read : pass.reads) bytes += read.bytes;
  EXPECT_EQ(bytes, experts_->usage().bytes_read);
  experts_->set_times(nullptr);
  experts_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  Ask(0, {1});
  TakeAll(1);
  experts_->SettleUsage();
  EXPECT_EQ(times.passes().size(), 1u);
}

TEST_F(OffloadedExpertsTest, AMissIsToldWithWhatHadBeenKnownOfIt) {
  std::vector<MissEvent> events;
  Open(3, std::make_unique<Always>());
  experts_->set_miss_observer([&](const MissEvent& event) { events.push_back(event); });
  experts_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  Ask(0, {});
  reader_->Hold(true);
  experts_->OnForecast(1, 1, {});
  experts_->Advance();
  Ask(1, {2, 3});
  TakeAll(2);
  ASSERT_EQ(events.size(), 2u);
  const MissEvent& guessed = events[0].id.expert == 3 ? events[0] : events[1];
  const MissEvent& other = events[0].id.expert == 3 ? events[1] : events[0];
  EXPECT_EQ(guessed.foresight.ahead, 1u);
  EXPECT_EQ(guessed.foresight.why(), NotEarlier::kTooLate);
  EXPECT_EQ(other.foresight.why(), NotEarlier::kNotPredicted);
  const Foresight foresight = experts_->usage().foresight;
  EXPECT_EQ(foresight.needed, 2u);
  EXPECT_EQ(foresight.named, 1u);
}

TEST_F(OffloadedExpertsTest, TellsOfEachMissOnce) {
  std::vector<MissEvent> events;
  experts_->set_miss_observer([&](const MissEvent& event) { events.push_back(event); });
  Ask(0, {0, 1, 2});
  TakeAll(3);
  Ask(0, {1});
  TakeAll(1);
  Ask(1, {3});
  TakeAll(1);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events.back().id, (ExpertId{1, 3}));
  EXPECT_TRUE(events.back().evicted.has_value());
  EXPECT_THAT(ToString(events.back()),
              HasSubstr("layer 1, expert 3: missed by 1 token; answer: load (nothing was "
                        "measured to choose by); slot"));
}

TEST_F(OffloadedExpertsTest, ASmallerCacheKeepsTheBytesOfWhatStaysAndGivesTheRestBack) {
  constexpr std::uint32_t kAll = kMarkedLayers * kMarkedExperts;
  Open(kAll);
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
  Ask(1, {0, 1, 2, 3});
  TakeAll(4);
  Ask(1, {3});  // asked for last
  TakeAll(1);
  EXPECT_EQ(experts_->slot_use(), (SlotUse{.most = kAll,
                                           .slots = kAll,
                                           .with_memory = kAll,
                                           .slot = experts_->loads().slot_bytes()}));
  const SlotUse fewer = experts_->UseSlots(2);
  EXPECT_EQ(fewer.slots, 2u);
  EXPECT_EQ(fewer.with_memory, 2u);
  EXPECT_EQ(fewer.given_back, kAll - 2);
  EXPECT_EQ(fewer.returned, (kAll - 2) * fewer.slot);
  EXPECT_EQ(fewer.moved, 2u);
  EXPECT_FALSE(fewer.refused);
  Ask(1, {3});
  EXPECT_EQ(Take(false).size(), 1u);  // with its bytes, in another slot
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
  const SlotUse more = experts_->UseSlots(kAll + 5);
  EXPECT_EQ(more.slots, kAll);
  EXPECT_EQ(more.taken_again, kAll - 2);
  EXPECT_EQ(more.with_memory, 2u);  // until something is loaded
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
  Ask(0, {0, 1, 2, 3});
  EXPECT_EQ(Take(false).size(), 4u);
}

TEST_F(OffloadedExpertsTest, WhatIsHeldStaysWhereItIs) {
  Open(8);
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
  const std::vector<std::uint32_t> held = {1, 2};
  ASSERT_TRUE(experts_->Hold(1, held).ok());
  EXPECT_EQ(experts_->UseSlots(1).slots, 2 + kLeastSlots);
  for (const std::uint32_t expert : held) EXPECT_TRUE(experts_->held().Holds({1, expert}));
  Ask(1, {1, 2});
  EXPECT_EQ(Take(false).size(), 2u);
  Ask(0, {0, 1, 2, 3});
  TakeAll(4);
}

// Every Take compares the bytes with what the expert should have.
TEST_F(OffloadedExpertsTest, BytesAreRightHoweverTheCacheGrowsAndShrinks) {
  Rng rng(TestSeed());
  for (int round = 0; round < 30; ++round) {
    Open(8);
    for (int pass = 0; pass < 40; ++pass) {
      if (rng.Below(2) == 0) {
        experts_->UseSlots(static_cast<std::uint32_t>(1 + rng.Below(8)));
        EXPECT_GE(experts_->slot_use().slots, kLeastSlots);
      }
      for (std::uint32_t layer = 0; layer < kMarkedLayers; ++layer) {
        std::vector<std::uint32_t> wanted;
        for (std::uint32_t e = 0; e < kMarkedExperts; ++e) {
          if (rng.Below(2) == 0) wanted.push_back(e);
        }
        if (wanted.empty()) continue;
        Ask(layer, wanted);
        if (rng.Below(8) != 0) TakeAll(wanted.size());  // else its loads go on
      }
      const SlotUse use = experts_->slot_use();
      EXPECT_EQ(use.slots, use.most - use.given_back + use.taken_again);
    }
  }
}

}  // namespace
}  // namespace troupe
