// Thousands of random interleavings of demands, loads, failures, cancellations and closings, held
// to what must always be true of a MissFlow.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/rng.h"
#include "expert/cache/lru.h"
#include "expert/flow/miss_flow.h"
#include "expert/flow/scripted_loads_for_test.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kRandomGrid{.layers = 3, .experts = 6};

class RandomGuesses final : public Predictor {
 public:
  explicit RandomGuesses(Rng& rng) : rng_(rng) {}
  std::string_view name() const override { return "random"; }
  void OnChosen(const LayerChoices&) override {}
  std::vector<Guess> Predict(std::uint32_t, std::uint32_t, const GateScores&) override {
    std::vector<Guess> guesses;
    for (std::uint32_t e = 0; e < kRandomGrid.experts; ++e) {
      if (rng_.Below(3) != 0) continue;
      guesses.push_back({.expert = e, .weight = 1, .expected = true});
    }
    return guesses;
  }

 private:
  Rng& rng_;
};

// A flow, what is open in it, and what was promised to each demand.
class Model {
 public:
  Model(Rng& rng, std::uint32_t slots, bool predicts, bool low, bool in_order)
      : rng_(rng),
        slots_(slots),
        flow_({.grid = kRandomGrid, .slots = slots, .quotas = {}},
              std::make_unique<Lru>(kRandomGrid),
              predicts ? std::make_unique<RandomGuesses>(rng) : nullptr, loads_,
              {.routing = {.experts = kRandomGrid.experts, .top_k = 2, .low_copies = low},
               .prefetch = {.governed = false, .governor = {}},
               .low_copies = {.prefill_share = low ? 0.5 : 0, .decode = low},
               .in_order = in_order}) {
    if (rng_.Below(2) == 0) return;  // nothing is measured
    if (rng_.Below(2) == 0) places_.push_back({.name = "a peer", .expert_seconds = 2});
    loads_.set_costs({.full = 2_B,
                      .low = 1_B,
                      .medium = {.bytes_per_second = 1},
                      .local = {.first_row_seconds = 0.5 * static_cast<double>(rng_.Below(8))},
                      .places = places_});
  }

  void Step() {
    loads_.set_cancel_says(static_cast<CallOff>(rng_.Below(3)));
    switch (rng_.Below(10)) {
      case 0:
        if (demands_.size() < 3) Ask();
        break;
      case 1:
      case 2:
        EndSome(rng_.Below(6) == 0);
        break;
      case 3:
        flow_.Continue();
        break;
      case 4:
        if (rng_.Below(6) == 0 && !demands_.empty()) Close(Any());
        break;
      case 5:
        if (last_layer_ + 1 < kRandomGrid.layers) flow_.OnForecast(last_layer_ + 1, 1, {});
        break;
      case 6:
        if (!demands_.empty()) TakeBack(Any());
        break;
      case 7:
        if (demands_.empty() && rng_.Below(2) == 0) Resize();
        break;
      default:
        if (!demands_.empty()) Drive(Any());
    }
    Check();
  }

  // Everything that is open comes to its end.
  void Finish() {
    for (int i = 0; !demands_.empty(); ++i) {
      ASSERT_LT(i, 10'000) << "no progress";
      EndSome(false);
      Drive(Any());
      Check();
    }
    while (!loads_.idle()) EndSome(false);
    // No pin is left behind: a layer passes through the whole cache.
    Ask();
    while (!demands_.empty()) {
      EndSome(false);
      Drive(Any());
    }
  }

 private:
  struct Promise {
    std::uint32_t layer = 0;
    std::set<std::uint32_t> owed;
    std::set<std::uint32_t> sent = {};  // elsewhere
    bool full = false;                  // low copies are not allowed
  };

  DemandId Any() {
    auto at = demands_.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(rng_.Below(demands_.size())));
    return at->first;
  }

  void Ask() {
    const bool own = std::ranges::none_of(own_, [](const auto& pair) { return pair.second; });
    const auto layer = static_cast<std::uint32_t>(own ? (last_layer_ + 1) % kRandomGrid.layers
                                                      : rng_.Below(kRandomGrid.layers));
    if (own) {
      if (layer == 0 || !begun_) {
        begun_ = true;
        const auto rows = static_cast<std::uint32_t>(1 + rng_.Below(12));
        flow_.OnPassBegins(OneGroup(0, rng_.Below(2) == 0 ? Phase::kPrompt : Phase::kDecode, rows));
      }
      last_layer_ = layer;
    }
    std::vector<ExpertDemand> demands;
    Promise promise{.layer = layer, .owed = {}, .full = !own};
    for (std::uint32_t e = 0; e < kRandomGrid.experts; ++e) {
      if (rng_.Below(2) == 0) continue;
      demands.push_back({.expert = e, .tokens = static_cast<std::uint32_t>(1 + rng_.Below(4))});
      promise.owed.insert(e);
    }
    const DemandOf others = rng_.Below(2) == 0 ? DemandOf::kPeer : DemandOf::kHolding;
    const DemandId id = flow_.Ask(layer, demands, ++now_, own ? DemandOf::kPass : others);
    for (const AnsweredElsewhere& elsewhere : flow_.Elsewhere(id)) {
      ASSERT_TRUE(own && !places_.empty());
      ASSERT_EQ(promise.owed.erase(elsewhere.expert), 1u);
      promise.sent.insert(elsewhere.expert);
    }
    demands_[id] = std::move(promise);
    own_[id] = own;
  }

  void EndSome(bool fails) {
    if (loads_.idle()) return;
    const auto& under_way = loads_.under_way();
    const ExpertId id = under_way[rng_.Below(under_way.size())].id;
    const LoadEnd end = loads_.End(id, fails ? DataLoss("torn") : OkStatus());
    if (fails && end.status.code() == Code::kDataLoss) failed_.insert(id);
    flow_.OnLoadsEnded({&end, 1}, ++now_);
  }

  // One that was to come from elsewhere does not.
  void TakeBack(DemandId id) {
    Promise& promise = demands_.at(id);
    if (promise.sent.empty()) return;
    const std::uint32_t expert = *promise.sent.begin();
    promise.sent.erase(expert);
    promise.owed.insert(expert);
    flow_.TakeBack(id, expert);
  }

  // Between passes, whatever is being loaded.
  void Resize() {
    limit_ = static_cast<std::uint32_t>(1 + rng_.Below(slots_));
    const ExpertCache::Resized resized = flow_.Resize(limit_);
    ASSERT_GE(resized.below, limit_);
    for (const ExpertCache::Move& move : resized.moved) {
      ASSERT_LT(move.to, limit_);
      ASSERT_GE(move.from, limit_);
      ASSERT_EQ(flow_.cache().SlotOf(move.id), move.to);
    }
    for (const auto& load : loads_.under_way()) ASSERT_LT(load.slot, resized.below);
  }

  void Close(DemandId id) {
    flow_.Close(id);
    demands_.erase(id);
    own_.erase(id);
  }

  void Drive(DemandId id) {
    flow_.LetGo(id);
    if (rng_.Below(4) != 0) flow_.Continue();
    const bool wait = rng_.Below(2) == 0;
    const bool must_wait = wait && flow_.MustWait(id);
    if (must_wait) {
      ASSERT_FALSE(loads_.idle());
    }
    const Result<std::span<const Given>> given = flow_.Give(id);
    Promise& promise = demands_.at(id);
    if (!given.ok()) {
      // Only for an expert of its own whose load failed.
      bool explained = false;
      for (const std::uint32_t e : promise.owed) explained |= failed_.contains({promise.layer, e});
      ASSERT_TRUE(explained);
      return Close(id);
    }
    for (const Given& expert : *given) {
      ASSERT_EQ(promise.owed.erase(expert.expert), 1u) << "given twice, or never asked for";
      const ExpertId given_id{promise.layer, expert.expert};
      ASSERT_EQ(flow_.cache().Find(given_id), Residence::kResident);
      ASSERT_EQ(flow_.cache().SlotOf(given_id), expert.slot);
      ASSERT_EQ(flow_.cache().CopyOf(given_id), expert.copy);
      ASSERT_TRUE(!promise.full || expert.copy == ExpertCopy::kFull);
    }
    if (wait && !must_wait && given->empty() && !flow_.IsDone(id)) {
      ASSERT_GT(demands_.size(), 1u) << "nothing to give, nothing under way, no one else";
    }
    ASSERT_EQ(flow_.IsDone(id), promise.owed.empty());
    if (promise.owed.empty()) Close(id);
  }

  void Check() {
    const ExpertUsage usage = flow_.usage();
    ASSERT_EQ(usage.waited + usage.loaded + usage.loaded_low + usage.elsewhere, usage.misses);
    std::set<std::uint32_t> slots;
    std::uint32_t held = 0, first = 0;
    for (std::uint32_t layer = 0; layer < kRandomGrid.layers; ++layer) {
      held += flow_.cache().held(layer);
      for (std::uint32_t e = 0; e < kRandomGrid.experts; ++e) {
        if (flow_.cache().Find({layer, e}) == Residence::kAbsent) continue;
        ASSERT_TRUE(slots.insert(flow_.cache().SlotOf({layer, e})).second) << "two in one slot";
        first += flow_.cache().SlotOf({layer, e}) < limit_ ? 1 : 0;
      }
    }
    ASSERT_LE(held, slots_);
    ASSERT_LE(first + flow_.cache().free_slots(), limit_);
    if (limit_ == slots_) {
      ASSERT_EQ(held + flow_.cache().free_slots(), slots_);
    }
    for (const auto& load : loads_.under_way()) {
      ASSERT_EQ(flow_.cache().Find(load.id), Residence::kLoading);
    }
  }

  Rng& rng_;
  std::uint32_t slots_;
  std::uint32_t limit_ = slots_;  // of these, that may be used
  std::vector<Place> places_;
  ScriptedLoads loads_;
  MissFlow flow_;
  std::map<DemandId, Promise> demands_;
  std::map<DemandId, bool> own_;
  std::set<ExpertId> failed_;
  std::uint32_t last_layer_ = kRandomGrid.layers - 1;
  bool begun_ = false;
  Nanos now_ = 0;
};

TEST(MissFlowRandom, EveryExpertIsGivenOnceSlotsAreNeverSharedAndSomethingAlwaysMoves) {
  Rng rng(TestSeed());
  for (int run = 0; run < 400; ++run) {
    const auto slots = static_cast<std::uint32_t>(1 + rng.Below(10));
    Model model(rng, slots, rng.Below(2) == 0, rng.Below(2) == 0, rng.Below(2) == 0);
    for (int step = 0; step < 120; ++step) {
      model.Step();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "run " << run << ", step " << step;
    }
    model.Finish();
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "run " << run;
  }
}

}  // namespace
}  // namespace troupe
