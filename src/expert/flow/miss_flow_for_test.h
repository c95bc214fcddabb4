// A MissFlow whose loads end when a test says so, whose predictor says what a test tells it to, and
// whose policy writes down who asked.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "expert/cache/lru.h"
#include "expert/flow/miss_flow.h"
#include "expert/flow/scripted_loads_for_test.h"
#include "expert/forecast/told_predictor_for_test.h"

namespace troupe {

inline constexpr ExpertGrid kFlowGrid{.layers = 3, .experts = 8};

// An LRU that writes down who asked.
class ListeningLru final : public EvictionPolicy {
 public:
  struct Ask {
    ExpertId id;
    std::vector<Asker> askers;
    bool operator==(const Ask&) const = default;
  };
  explicit ListeningLru(std::vector<Ask>& asks) : lru_(kFlowGrid), asks_(asks) {}
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

// One row of each.
inline PassFacts TwoSequences(Phase first, Phase second, bool exact = false) {
  return {.first_layer = 0,
          .groups = {{.sequence = 0, .request = 10, .phase = first, .rows = 1},
                     {.sequence = 1, .request = 11, .phase = second, .exact = exact, .rows = 1}}};
}

class MissFlowTest : public testing::Test {
 protected:
  void Open(std::uint32_t slots, FlowOptions options = {}, bool predicts = false) {
    options.routing.experts = kFlowGrid.experts;
    if (options.routing.top_k == 0) options.routing.top_k = 2;
    options.prefetch.governed = false;
    flow_ = std::make_unique<MissFlow>(CacheShape{.grid = kFlowGrid, .slots = slots, .quotas = {}},
                                       std::make_unique<ListeningLru>(asks_),
                                       predicts ? std::make_unique<Told>(guesses_) : nullptr,
                                       loads_, std::move(options));
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
  std::vector<ListeningLru::Ask> asks_;
  Nanos now_ = 0;
  std::unique_ptr<MissFlow> flow_;
};

}  // namespace troupe
