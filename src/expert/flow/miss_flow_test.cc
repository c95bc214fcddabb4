#include "expert/flow/miss_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "expert/cache/lru.h"
#include "expert/flow/scripted_loads_for_test.h"
#include "expert/forecast/told_predictor_for_test.h"
#include "expert/substitution/substitution_spec.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr ExpertGrid kGrid{.layers = 3, .experts = 8};

// An LRU that writes down who asked.
class Listening final : public EvictionPolicy {
 public:
  struct Ask {
    ExpertId id;
    std::vector<Asker> askers;
    bool operator==(const Ask&) const = default;
  };
  explicit Listening(std::vector<Ask>& asks) : lru_(kGrid), asks_(asks) {}
  std::string_view name() const override { return "listening"; }
  void OnAsked(ExpertId id, std::span<const Asker> askers) override {
    asks_.push_back({id, {askers.begin(), askers.end()}});
    lru_.OnAsked(id, askers);
  }
  std::size_t Choose(std::span<const ExpertId> candidates) override {
    return lru_.Choose(candidates);
  }

 private:
  Lru lru_;
  std::vector<Ask>& asks_;
};

class MissFlowTest : public testing::Test {
 protected:
  void Open(std::uint32_t slots, FlowOptions options = {}, bool predicts = false) {
    options.routing.experts = kGrid.experts;
    if (options.routing.top_k == 0) options.routing.top_k = 2;
    options.prefetch.governed = false;
    flow_ = std::make_unique<MissFlow>(
        CacheShape{.grid = kGrid, .slots = slots, .quotas = {}}, std::make_unique<Listening>(asks_),
        predicts ? std::make_unique<Told>(guesses_) : nullptr, loads_, std::move(options));
  }
  void SetUp() override { Open(4); }

  DemandId Ask(std::uint32_t layer, const std::vector<std::uint32_t>& experts,
               DemandOf whose = DemandOf::kPass) {
    std::vector<ExpertDemand> demands;
    for (const std::uint32_t e : experts) demands.push_back({.expert = e, .tokens = 1});
    return flow_->Ask(layer, demands, now_, whose);
  }
  std::vector<std::uint32_t> Give(DemandId id) {
    std::vector<std::uint32_t> experts;
    const std::span<const Given> given_now = flow_->Give(id).value();
    for (const Given& given : given_now) experts.push_back(given.expert);
    return experts;
  }
  void End(ExpertId id, Status status = OkStatus()) {
    const LoadEnd end = loads_.End(id, std::move(status));
    flow_->OnLoadsEnded({&end, 1}, ++now_);
  }
  std::vector<ExpertId> UnderWay() const {
    std::vector<ExpertId> ids;
    for (const auto& load : loads_.under_way()) ids.push_back(load.id);
    return ids;
  }
  // Asks, loads, gives and closes.
  void BringIn(std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    const DemandId id = Ask(layer, experts);
    while (!flow_->IsDone(id)) {
      flow_->LetGo(id);
      flow_->Continue();
      for (const ExpertId loading : UnderWay()) End(loading);
      Give(id);
    }
    flow_->Close(id);
    loads_.TakeBegun();
  }

  ScriptedLoads loads_;
  std::vector<Guess> guesses_;
  std::vector<Listening::Ask> asks_;
  Nanos now_ = 0;
  std::unique_ptr<MissFlow> flow_;
};

TEST_F(MissFlowTest, ResidentsAreGivenAtOnceAndMissesAsTheirLoadsEnd) {
  BringIn(0, {1});
  const DemandId id = Ask(0, {1, 2, 3});
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}, ExpertId{0, 3}));
  EXPECT_THAT(Give(id), ElementsAre(1));
  EXPECT_TRUE(flow_->MustWait(id));
  End({0, 3});
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(3));
  End({0, 2});
  EXPECT_THAT(Give(id), ElementsAre(2));
  EXPECT_TRUE(flow_->IsDone(id));
}

// The policy sees the asks of the text's tokens in their order, whether a draft brought them or
// not.
TEST_F(MissFlowTest, ThePolicyLearnsOfADraftWhatTheTextHas) {
  const std::vector<std::vector<std::uint32_t>> chosen = {{0, 1}, {2, 3}, {1, 4}, {6, 7}};
  const auto pass = [&](std::size_t first, std::uint32_t rows, std::uint32_t guessed) {
    flow_->OnPassBegins({.groups = {{.sequence = 0, .rows = rows, .guessed = guessed}}});
    for (std::uint32_t layer = 0; layer < kGrid.layers; ++layer) {
      std::vector<ExpertChoice> choices;
      std::set<std::uint32_t> needed;
      for (std::size_t row = first; row < first + rows; ++row) {
        for (const std::uint32_t expert : chosen[row]) {
          choices.push_back({.expert = expert, .weight = 1});
          needed.insert(expert);
        }
      }
      flow_->OnRouted(layer, {}, choices);
      BringIn(layer, {needed.begin(), needed.end()});
    }
  };
  Open(24);
  for (std::size_t row = 0; row < 3; ++row) pass(row, 1, 0);
  const auto one_by_one = std::exchange(asks_, {});
  Open(24);
  pass(0, 4, 3);
  const std::uint32_t right = 2;
  flow_->OnGuessesChecked({&right, 1});
  EXPECT_EQ(asks_, one_by_one);
  EXPECT_EQ(flow_->guesses_learned(), 2u);
  EXPECT_EQ(flow_->cache().Find({0, 7}), Residence::kResident) << "read, though it was wrong";
}

TEST_F(MissFlowTest, ADemandOvertakesAPrefetchOfTheSameExpert) {
  Open(2, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  ASSERT_EQ(loads_.under_way().size(), 1u);
  EXPECT_EQ(loads_.under_way()[0].urgency, Urgency::kPrefetch);
  const DemandId id = Ask(1, {7});
  EXPECT_THAT(loads_.TakePromoted(), ElementsAre(ExpertId{1, 7}));
  EXPECT_TRUE(flow_->MustWait(id));
  End({1, 7});
  EXPECT_THAT(Give(id), ElementsAre(7));
  EXPECT_EQ(flow_->usage().prefetch_late, 1u);
}

TEST_F(MissFlowTest, WhatWasReadAheadForNothingIsCancelledWhenItsLayerAsksForOthers) {
  Open(4, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  const DemandId id = Ask(1, {2});
  EXPECT_THAT(UnderWay(), IsEmpty());
  EXPECT_EQ(flow_->cache().Find({1, 7}), Residence::kAbsent);
  EXPECT_EQ(flow_->usage().prefetch_cancelled, 1u);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{1, 2}));
  flow_->Close(id);
}

TEST_F(MissFlowTest, OneThatWasCalledOffAndIsWantedAgainBeginsAnew) {
  Open(4, {}, /*predicts=*/true);
  loads_.set_cancel_says(CallOff::kEnding);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  flow_->Close(Ask(1, {2}));  // calls 7 off, which ends later
  const DemandId id = Ask(1, {7});
  EXPECT_TRUE(flow_->MustWait(id));
  End({1, 7});  // with kCancelled
  flow_->Continue();
  EXPECT_THAT(UnderWay(), testing::Contains(ExpertId{1, 7}));
  EXPECT_EQ(flow_->begun_anew(), 1u);
  End({1, 7});
  EXPECT_THAT(Give(id), ElementsAre(7));
}

TEST_F(MissFlowTest, TwoOpenDemandsForTheSameExpertShareItsLoad) {
  const DemandId first = Ask(0, {1, 2});
  const DemandId second = Ask(0, {2, 3}, DemandOf::kPeer);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}, ExpertId{0, 2}, ExpertId{0, 3}));
  End({0, 2});
  EXPECT_THAT(Give(first), ElementsAre(2));
  EXPECT_THAT(Give(second), ElementsAre(2));
  flow_->Close(first);
  EXPECT_TRUE(flow_->MustWait(second));
  End({0, 3});
  EXPECT_THAT(Give(second), ElementsAre(3));
}

TEST_F(MissFlowTest, WhatIsOnlyToBeHeldIsLoadedBehindAllOthersUntilRowsAskForIt) {
  const DemandId held = Ask(0, {1, 2}, DemandOf::kHolding);
  flow_->Continue();
  for (const auto& load : loads_.TakeBegun()) EXPECT_EQ(load.urgency, Urgency::kPrefetch);
  EXPECT_FALSE(flow_->AnyRowWaits());
  const DemandId pass = Ask(0, {2});
  flow_->Continue();
  EXPECT_TRUE(flow_->AnyRowWaits());
  EXPECT_THAT(loads_.TakePromoted(), ElementsAre(ExpertId{0, 2}));
  End({0, 2});
  EXPECT_THAT(Give(pass), ElementsAre(2));
  EXPECT_THAT(Give(held), ElementsAre(2));
  EXPECT_TRUE(flow_->MustWait(held));
  End({0, 1});
  EXPECT_THAT(Give(held), ElementsAre(1));
}

TEST_F(MissFlowTest, WhatIsOnlyToBeHeldDoesNotHastenALoadAhead) {
  Open(4, {}, /*predicts=*/true);
  guesses_ = {{.expert = 7, .weight = 1, .expected = true}};
  BringIn(0, {0});
  flow_->OnForecast(1, 1, {});
  flow_->Continue();
  const DemandId held = Ask(1, {7}, DemandOf::kHolding);
  flow_->Continue();
  EXPECT_THAT(loads_.TakePromoted(), IsEmpty());
  const DemandId pass = Ask(1, {2});  // nor does it go, though no row wants it
  flow_->Continue();
  EXPECT_THAT(UnderWay(), UnorderedElementsAre(ExpertId{1, 7}, ExpertId{1, 2}));
  End({1, 7});
  EXPECT_THAT(Give(held), ElementsAre(7));
  flow_->Close(pass);
}

TEST_F(MissFlowTest, ACacheOfTwoSlotsLetsALayerPassThroughIt) {
  Open(2);
  const DemandId id = Ask(0, {0, 1, 2, 3, 4});
  std::vector<std::uint32_t> given;
  while (!flow_->IsDone(id)) {
    flow_->LetGo(id);
    flow_->Continue();
    EXPECT_LE(loads_.under_way().size(), 2u);
    if (flow_->MustWait(id)) End(UnderWay().front());
    for (const std::uint32_t e : Give(id)) given.push_back(e);
  }
  EXPECT_THAT(given, UnorderedElementsAre(0, 1, 2, 3, 4));
}

TEST_F(MissFlowTest, AFailureIsTheErrorOfThoseWhoWaitForItAlone) {
  const DemandId first = Ask(0, {1});
  const DemandId second = Ask(0, {2}, DemandOf::kPeer);
  flow_->Continue();
  End({0, 1}, DataLoss("torn"));
  EXPECT_FALSE(flow_->MustWait(first));
  EXPECT_THAT(flow_->Give(first).status().message(), HasSubstr("torn"));
  flow_->Close(first);
  End({0, 2});
  EXPECT_THAT(Give(second), ElementsAre(2));
  const DemandId again = Ask(0, {1});
  flow_->Continue();
  End({0, 1});
  EXPECT_THAT(Give(again), ElementsAre(1));
}

TEST_F(MissFlowTest, AFailureThatNobodyWaitsForFailsNobody) {
  const DemandId first = Ask(0, {1});
  flow_->Continue();
  flow_->Close(first);
  const DemandId second = Ask(0, {2});
  End({0, 1}, DataLoss("torn"));
  flow_->Continue();
  End({0, 2});
  EXPECT_THAT(Give(second), ElementsAre(2));
}

TEST_F(MissFlowTest, InOrderMissesAreGivenAsTheyWereAskedForWhileSomeHaveNoSlot) {
  Open(2, {.in_order = true});
  const DemandId id = Ask(0, {0, 1, 2});
  flow_->Continue();
  End({0, 1});
  EXPECT_THAT(Give(id), IsEmpty());
  EXPECT_TRUE(flow_->MustWait(id));
  End({0, 0});
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(0));
  flow_->LetGo(id);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}));
  EXPECT_THAT(Give(id), ElementsAre(1));  // all have their slots
}

TEST_F(MissFlowTest, WhatIsGivenKeepsItsSlotUntilItIsLetGo) {
  Open(1);
  const DemandId id = Ask(0, {0, 1});
  flow_->Continue();
  End({0, 0});
  EXPECT_THAT(Give(id), ElementsAre(0));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), IsEmpty());
  flow_->LetGo(id);
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}));
}

TEST_F(MissFlowTest, ADemandThatFindsAllSlotsHeldForAnotherGetsThemWhenThatIsClosed) {
  Open(1);
  const DemandId first = Ask(0, {0});
  flow_->Continue();
  End({0, 0});
  EXPECT_THAT(Give(first), ElementsAre(0));
  const DemandId second = Ask(0, {1}, DemandOf::kPeer);
  flow_->Continue();
  EXPECT_FALSE(flow_->MustWait(second));  // no load would help
  EXPECT_THAT(Give(second), IsEmpty());
  flow_->Close(first);
  EXPECT_TRUE(flow_->MustWait(second));
  End({0, 1});
  EXPECT_THAT(Give(second), ElementsAre(1));
}

TEST_F(MissFlowTest, WhatIsAnsweredElsewhereIsNeverLoadedNorGiven) {
  // A second a load: of three the place takes one, in two seconds.
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 2}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const std::vector<ExpertDemand> demands = {
      {.expert = 0, .tokens = 2}, {.expert = 1, .tokens = 1}, {.expert = 2, .tokens = 3}};
  const DemandId id = flow_->Ask(0, demands, now_);
  EXPECT_THAT(flow_->Elsewhere(id),
              ElementsAre(AnsweredElsewhere{.expert = 1, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 2}, ExpertId{0, 0}));
  End({0, 0});
  End({0, 2});
  EXPECT_THAT(Give(id), UnorderedElementsAre(0, 2));
  EXPECT_TRUE(flow_->IsDone(id));
  EXPECT_EQ(flow_->usage().misses, 3u);
  EXPECT_EQ(flow_->usage().elsewhere, 1u);
  EXPECT_EQ(flow_->usage().loaded, 2u);
}

TEST_F(MissFlowTest, WhatIsNotAnsweredElsewhereIsLoadedAfterAllAndGiven) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const DemandId id = Ask(0, {0, 1});
  ASSERT_EQ(flow_->Elsewhere(id).size(), 2u);
  EXPECT_TRUE(flow_->IsDone(id));
  flow_->TakeBack(id, 0);
  EXPECT_FALSE(flow_->IsDone(id));
  EXPECT_THAT(flow_->Elsewhere(id),
              ElementsAre(AnsweredElsewhere{.expert = 1, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 0}));
  End({0, 0});
  EXPECT_THAT(Give(id), ElementsAre(0));
  EXPECT_TRUE(flow_->IsDone(id));
  EXPECT_EQ(flow_->usage().elsewhere, 1u);
  EXPECT_EQ(flow_->usage().loaded, 1u);
}

TEST_F(MissFlowTest, WhatIsTakenBackMayHaveComeMeanwhile) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  loads_.set_costs({.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places});
  const DemandId id = Ask(0, {0});
  const DemandId other = Ask(0, {0}, DemandOf::kPeer);
  flow_->Continue();
  End({0, 0});
  flow_->TakeBack(id, 0);
  EXPECT_FALSE(flow_->MustWait(id));
  EXPECT_THAT(Give(id), ElementsAre(0));
  EXPECT_THAT(Give(other), ElementsAre(0));
}

TEST_F(MissFlowTest, APlaceIsAskedOnlyForWhatItHolds) {
  const std::vector<Place> places = {{.name = "a", .expert_seconds = 0.1},
                                     {.name = "b", .expert_seconds = 0.2}};
  const std::uint32_t both[] = {0, 1}, second[] = {1};
  const std::vector<std::span<const std::uint32_t>> holders = {second, {}, both, {}};
  loads_.set_costs(
      {.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places, .holders = holders});
  const DemandId id = Ask(0, {0, 1, 2});
  EXPECT_THAT(flow_->Elsewhere(id),
              UnorderedElementsAre(AnsweredElsewhere{.expert = 0, .place = 1, .load_seconds = 1},
                                   AnsweredElsewhere{.expert = 2, .place = 0, .load_seconds = 1}));
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 1}));
}

TEST_F(MissFlowTest, APeersDemandIsAnsweredHere) {
  const std::vector<Place> places = {{.name = "a peer", .expert_seconds = 0.1}};
  const std::uint32_t first[] = {0};
  const std::vector<std::span<const std::uint32_t>> holders(4, first);
  loads_.set_costs(
      {.full = 1_B, .medium = {.bytes_per_second = 1}, .places = places, .holders = holders});
  const DemandId id = Ask(0, {0, 1}, DemandOf::kPeer);
  EXPECT_THAT(flow_->Elsewhere(id), IsEmpty());
  flow_->Continue();
  EXPECT_THAT(UnderWay(), ElementsAre(ExpertId{0, 0}, ExpertId{0, 1}));
}

TEST_F(MissFlowTest, APeersFullCopyWaitsUntilTheLowOneIsNotUsedAnyMore) {
  Open(2, {.routing = {.top_k = 1, .low_copies = true}, .low_copies = {.decode = true}});
  flow_->OnPassBegins(OneGroup(0, Phase::kDecode, 1));
  const DemandId low = Ask(0, {1});
  flow_->Continue();
  EXPECT_EQ(loads_.under_way()[0].copy, ExpertCopy::kLow);
  const DemandId full = Ask(0, {1}, DemandOf::kPeer);
  End({0, 1});
  EXPECT_EQ(flow_->Give(low).value()[0].copy, ExpertCopy::kLow);
  EXPECT_FALSE(flow_->MustWait(full));  // its low copy is computed with
  EXPECT_THAT(Give(full), IsEmpty());
  flow_->Close(low);
  EXPECT_TRUE(flow_->MustWait(full));
  EXPECT_EQ(loads_.under_way()[0].copy, ExpertCopy::kFull);
  End({0, 1});
  EXPECT_EQ(flow_->Give(full).value()[0].copy, ExpertCopy::kFull);
  EXPECT_EQ(flow_->usage().low_assignments, 1u);
}

PassFacts TwoSequences(Phase first, Phase second, bool exact = false) {
  return {.first_layer = 0,
          .groups = {{.sequence = 0, .request = 10, .phase = first, .rows = 1},
                     {.sequence = 1, .request = 11, .phase = second, .exact = exact, .rows = 1}}};
}

TEST_F(MissFlowTest, ThePolicyLearnsWhoseRowsAsked) {
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode));
  std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
  flow_->OnRouted(0, {}, chosen);
  const std::vector<ExpertDemand> demands = {{1, 1}, {2, 2}, {3, 1}};
  flow_->Ask(0, demands, 0);
  using Ask = Listening::Ask;
  EXPECT_THAT(asks_, ElementsAre(Ask{{0, 1}, {{0, 1}}}, Ask{{0, 2}, {{0, 1}, {1, 1}}},
                                 Ask{{0, 3}, {{1, 1}}}));
  const std::vector<GroupUse> uses = flow_->TakeGroupUses();
  EXPECT_THAT(uses, ElementsAre(GroupUse{.misses = 2}, GroupUse{.misses = 2}));
}

TEST_F(MissFlowTest, ExactRowsAndPromptsAreNotSubstitutedAndTheirLoadsServeTheOthers) {
  for (const PassFacts& pass : {TwoSequences(Phase::kDecode, Phase::kDecode, /*exact=*/true),
                                TwoSequences(Phase::kDecode, Phase::kPrompt)}) {
    Open(4);
    flow_->set_substitution(ParseSubstitution("drop", {}, {.most_tokens = 2}).value());
    flow_->OnPassBegins(pass);
    ASSERT_TRUE(flow_->Substitutes());
    std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
    flow_->OnRouted(0, {}, chosen);
    // The first row loses 1; 2 is loaded for the second row in any case.
    EXPECT_THAT(chosen, ElementsAre(ExpertChoice{kNoExpert, 0}, ExpertChoice{2, 1},
                                    ExpertChoice{2, 1}, ExpertChoice{3, 1}));
    EXPECT_EQ(flow_->usage().dropped, 1u);
    EXPECT_EQ(flow_->TakeGroupUses()[0].dropped, 1u);
  }
}

TEST_F(MissFlowTest, TheLimitOfSubstitutionCountsDecodeRowsAlone) {
  flow_->set_substitution(ParseSubstitution("drop", {}, {.most_tokens = 1}).value());
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kPrompt));
  EXPECT_TRUE(flow_->Substitutes());
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode));
  EXPECT_FALSE(flow_->Substitutes());
  flow_->OnPassBegins(OneGroup(0, Phase::kPrompt, 1));  // a prompt's last chunk
  EXPECT_FALSE(flow_->Substitutes());
}

TEST_F(MissFlowTest, AnExpertThatAnExactRowNeedsComesInFull) {
  Open(4, {.routing = {.top_k = 2, .low_copies = true}, .low_copies = {.decode = true}});
  flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode, /*exact=*/true));
  std::vector<ExpertChoice> chosen = {{1, 1}, {2, 1}, {2, 1}, {3, 1}};
  flow_->OnRouted(0, {}, chosen);
  const std::vector<ExpertDemand> demands = {{1, 1}, {2, 2}, {3, 1}};
  flow_->Ask(0, demands, 0);
  flow_->Continue();
  for (const auto& load : loads_.TakeBegun()) {
    EXPECT_EQ(load.copy, load.id.expert == 1 ? ExpertCopy::kLow : ExpertCopy::kFull);
  }
}

TEST_F(MissFlowTest, ALowCopyThatAnExactRowFindsIsReadAgainInFullAndThenServesTheOthers) {
  Open(4, {.routing = {.top_k = 1, .low_copies = true}, .low_copies = {.decode = true}});
  const auto pass = [&](bool exact) {
    flow_->OnPassBegins(TwoSequences(Phase::kDecode, Phase::kDecode, exact));
    std::vector<ExpertChoice> chosen = {{1, 1}, {1, 1}};
    flow_->OnRouted(0, {}, chosen);
    const std::vector<ExpertDemand> demands = {{1, 2}};
    const DemandId id = flow_->Ask(0, demands, 0);
    flow_->Continue();
    if (flow_->MustWait(id)) End({0, 1});
    const ExpertCopy given = flow_->Give(id).value()[0].copy;
    flow_->Close(id);
    return given;
  };
  EXPECT_EQ(pass(/*exact=*/false), ExpertCopy::kLow);
  EXPECT_EQ(pass(/*exact=*/true), ExpertCopy::kFull);
  EXPECT_EQ(pass(/*exact=*/false), ExpertCopy::kFull);
  EXPECT_EQ(loads_.TakeBegun().size(), 2u);
}

TEST_F(MissFlowTest, AMissTellsHowLongItWasWaitedFor) {
  const DemandId id = Ask(0, {1, 2});
  flow_->Continue();
  now_ += 999'999;
  End({0, 1});
  flow_->OnStalled(1'000'000);
  EXPECT_THAT(Give(id), ElementsAre(1));
  ASSERT_EQ(flow_->GivenMisses(id).size(), 1u);
  EXPECT_DOUBLE_EQ(flow_->GivenMisses(id)[0].load_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(flow_->GivenMisses(id)[0].waited_seconds, 1e-3);
  EXPECT_DOUBLE_EQ(flow_->usage().stall_seconds, 1e-3);
}

}  // namespace
}  // namespace troupe
