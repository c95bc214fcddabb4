#include "expert/prefetch/named_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "expert/cache/lru.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr ExpertGrid kNamedGrid{.layers = 4, .experts = 6};

// Reads ahead one expert after the other of layer 3, and writes down what it is told.
class OtherReader final : public Prefetching {
 public:
  std::optional<ExpertId> Next(std::size_t) override { return next; }
  void OnPause() override { ++pauses; }
  void OnLayerAsks(const LayerChoices&, Nanos) override { ++asks; }
  void OnLoadBegins(ExpertId id, std::optional<ExpertId>) override { begun.push_back(id); }
  PrefetchStats stats() const override {
    PrefetchStats stats;
    stats.loads = begun.size();
    return stats;
  }

  std::optional<ExpertId> next;
  int pauses = 0, asks = 0;
  std::vector<ExpertId> begun;
};

class NamedAheadTest : public testing::Test {
 protected:
  NamedAheadTest() {
    auto other = std::make_unique<OtherReader>();
    other_ = other.get();
    named_.emplace(cache_, std::move(other));
  }
  void Bring(ExpertId id) {
    const auto admission = cache_.Admit(id);
    ASSERT_TRUE(admission.has_value());
    if (admission->evicted) named_->OnEvicted(*admission->evicted, true);
    cache_.OnLoaded(id);
  }
  void Route(std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    std::vector<ExpertChoice> chosen;
    for (const std::uint32_t e : experts) chosen.push_back({.expert = e, .weight = 1});
    named_->OnDraftRouted(layer, chosen);
  }
  // Begins what is next; all that may be under way.
  std::vector<ExpertId> Begin() {
    std::vector<ExpertId> begun;
    while (const auto id = named_->Next(under_way_.size())) {
      const auto admission = cache_.Admit(*id);
      if (!admission) {
        named_->OnNoSlot(*id);
        continue;
      }
      if (admission->evicted) named_->OnEvicted(*admission->evicted, false);
      named_->OnLoadBegins(*id, admission->evicted);
      under_way_.push_back(*id);
      begun.push_back(*id);
    }
    return begun;
  }
  void End(ExpertId id) {
    std::erase(under_way_, id);
    cache_.OnLoaded(id);
    named_->OnLoaded(id);
  }
  void PassBegins() { named_->OnPassBegins(OneGroup(0, Phase::kDecode, 1)); }
  void Ask(std::uint32_t layer, const std::vector<std::uint32_t>& experts) {
    std::vector<ExpertDemand> demands;
    for (const std::uint32_t e : experts) demands.push_back({.expert = e, .tokens = 1});
    named_->OnLayerAsks({layer, demands}, 1);
    for (const std::uint32_t e : experts) {
      named_->OnFound({layer, e}, cache_.Ask({layer, e}, 1));
    }
    named_->Release(layer);
  }

  ExpertCache cache_{{.grid = kNamedGrid, .slots = 6, .quotas = {}},
                     std::make_unique<Lru>(kNamedGrid)};
  OtherReader* other_ = nullptr;
  std::optional<NamedAhead> named_;
  std::vector<ExpertId> under_way_;
};

TEST_F(NamedAheadTest, WhatIsMissedIsReadOnceAndLayerByLayer) {
  Bring({0, 1});
  named_->OnDraftPass();
  Route(0, {1, 2});
  Route(2, {3, 4});
  named_->OnDraftPass();
  Route(0, {2, 5});
  EXPECT_EQ(named_->named(), 4u);
  EXPECT_THAT(Begin(), ElementsAre(ExpertId{0, 2}, ExpertId{0, 5}));
  End({0, 2});
  End({0, 5});
  EXPECT_THAT(Begin(), ElementsAre(ExpertId{2, 3}, ExpertId{2, 4}));
}

TEST_F(NamedAheadTest, NoMoreThanTwoAreUnderWayTogether) {
  named_->OnDraftPass();
  Route(0, {0, 1, 2, 3});
  EXPECT_EQ(Begin().size(), NamedAhead::kMostUnderWay);
}

TEST_F(NamedAheadTest, OthersReadNothingWhileADraftGoesOnAndGoOnBehindWhatItNamed) {
  other_->next = ExpertId{3, 0};
  named_->OnDraftPass();
  EXPECT_EQ(other_->pauses, 1);
  Route(0, {1});
  EXPECT_THAT(Begin(), ElementsAre(ExpertId{0, 1}));
  named_->OnDraftPass();
  EXPECT_EQ(other_->pauses, 1);
  EXPECT_EQ(named_->Next(0), std::nullopt);
  PassBegins();
  EXPECT_EQ(named_->Next(0), (ExpertId{3, 0}));
  named_->OnLoadBegins({3, 0}, std::nullopt);
  EXPECT_THAT(other_->begun, ElementsAre(ExpertId{3, 0}));
  EXPECT_EQ(named_->stats().loads, 2u);
}

TEST_F(NamedAheadTest, WhatTheDraftUsedStaysUntilItsLayerHasAsked) {
  for (const std::uint32_t e : {0u, 1u}) Bring({0, e});
  for (const std::uint32_t e : {0u, 1u, 2u, 3u}) Bring({1, e});
  named_->OnDraftPass();
  Route(0, {0});
  Route(1, {0, 4});
  EXPECT_THAT(Begin(), ElementsAre(ExpertId{1, 4}));
  EXPECT_EQ(cache_.Find({0, 0}), Residence::kResident) << "the oldest, and used";
  EXPECT_EQ(cache_.Find({0, 1}), Residence::kAbsent);
  PassBegins();
  Ask(0, {});
  Bring({2, 0});
  EXPECT_EQ(cache_.Find({0, 0}), Residence::kAbsent) << "its layer has asked";
}

TEST_F(NamedAheadTest, ItKeepsHalfOfTheSlotsAtMost) {
  for (std::uint32_t e = 0; e < 6; ++e) Bring({1, e});
  named_->OnDraftPass();
  Route(1, {0, 1, 2, 3, 4, 5});
  for (std::uint32_t e = 0; e < 6; ++e) {
    Bring({0, e});
    cache_.Ask({0, e}, 1);
  }
  EXPECT_EQ(cache_.held(1), 3u) << "the others had to go";
}

TEST_F(NamedAheadTest, CountsWhatTheNextPassAsksForOfWhatDraftsBegan) {
  named_->OnDraftPass();
  Route(0, {0});
  Route(1, {1, 2});
  Begin();
  End({0, 0});
  Begin();
  PassBegins();
  Ask(0, {0});
  Ask(1, {1});  // on its way; 2 is not asked for
  Ask(2, {});
  End({1, 1});
  PassBegins();
  Ask(1, {1});
  const PrefetchStats stats = named_->stats();
  EXPECT_EQ(stats.drafts_begun, 3u);
  EXPECT_EQ(stats.drafts_used, 2u);
  EXPECT_EQ(stats.useful, 1u);
  EXPECT_EQ(stats.late, 1u);
  EXPECT_EQ(named_->waiting(), 1u);
}

TEST_F(NamedAheadTest, WhatALaterPassAsksForIsUsefulAndNotTheDrafts) {
  named_->OnDraftPass();
  Route(0, {0});
  Begin();
  End({0, 0});
  PassBegins();
  Ask(0, {});
  PassBegins();
  Ask(0, {0});
  EXPECT_EQ(named_->stats().useful, 1u);
  EXPECT_EQ(named_->stats().drafts_used, 0u);
}

TEST_F(NamedAheadTest, NamesGoWithTheirLayerAndWithTheNextDraft) {
  named_->OnDraftPass();
  Route(0, {0});
  Route(1, {1});
  PassBegins();
  Ask(0, {});
  EXPECT_FALSE(named_->IsWanted({0, 0}));
  EXPECT_TRUE(named_->IsWanted({1, 1}));  // the pass has failed, say
  named_->OnDraftPass();
  EXPECT_FALSE(named_->IsWanted({1, 1}));
  EXPECT_EQ(named_->named(), 0u);
}

TEST_F(NamedAheadTest, ALoadThatIsEvictedFailsOrIsCalledOffIsCountedSo) {
  named_->OnDraftPass();
  Route(0, {0, 1});
  Route(1, {2});
  Begin();
  named_->OnFailed({0, 0});
  named_->OnCancelled({0, 1});
  cache_.Abandon({0, 0});
  cache_.Abandon({0, 1});
  EXPECT_EQ(named_->stats().wasted, 1u);
  EXPECT_EQ(named_->stats().cancelled, 1u);
  EXPECT_EQ(named_->waiting(), 0u);
  EXPECT_THAT(other_->begun, IsEmpty());
}

}  // namespace
}  // namespace troupe
