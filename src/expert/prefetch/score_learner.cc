#include "expert/prefetch/score_learner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "expert/cache/echo.h"
#include "expert/cache/quotas.h"

namespace troupe {
namespace {

CacheShape HalfOf(ExpertGrid grid, std::uint32_t experts_per_token, std::uint32_t first_layer) {
  const std::uint32_t experts = (grid.layers - first_layer) * grid.experts;
  CacheShape shape{.grid = grid, .slots = std::max(1u, experts / 2), .quotas = {}};
  shape.quotas =
      EvenQuotas(grid, first_layer, shape.slots, std::min(experts_per_token, shape.slots / 4));
  return shape;
}

}  // namespace

Bytes ScoreLearner::BytesFor(ExpertGrid grid) {
  return MissForecast::BytesFor(grid) + AheadLoads::BytesFor(grid) +
         EvictionPolicyBytes("echo", grid) + Bytes(grid.Count() * sizeof(std::uint64_t));
}

ScoreLearner::ScoreLearner(ExpertGrid grid, std::uint32_t experts_per_token,
                           std::uint32_t first_layer)
    : grid_(grid),
      first_layer_(first_layer),
      cache_(std::make_unique<ExpertCache>(HalfOf(grid, experts_per_token, first_layer),
                                           std::make_unique<Echo>(grid))),
      loads_(std::make_unique<AheadLoads>(grid)),
      forecast_(std::make_unique<MissForecast>(*cache_, *loads_, experts_per_token)),
      uses_(grid.Count()) {}

void ScoreLearner::TokenBegins(std::uint32_t position, SequenceId sequence) {
  PassFacts pass = OneGroup(first_layer_, Phase::kDecode, 1, position);
  pass.groups[0].sequence = sequence;
  forecast_->OnPassBegins(pass);
  ++tokens_;
}

void ScoreLearner::OnLayer(std::uint32_t layer, std::span<const float> scores,
                           std::span<const std::uint32_t> chosen,
                           std::span<const EarlyGate> gates) {
  TROUPE_CHECK(scores.size() == grid_.experts);
  demands_.clear();
  for (const std::uint32_t expert : chosen) {
    demands_.push_back({.expert = expert, .tokens = 1});
    ++uses_[grid_.Index({layer, expert})];
  }
  forecast_->OnScores(layer, scores);
  forecast_->OnLayerAsks(layer, demands_, 0, said_);
  std::vector<ExpertId> absent;
  for (const ExpertDemand& demand : demands_) {
    const ExpertId id{layer, demand.expert};
    if (cache_->Ask(id, 1) == Residence::kAbsent) absent.push_back(id);
  }
  forecast_->Predict(forecast_->reach());
  for (const EarlyGate& gate : gates) {
    if (gate.ahead > forecast_->reach()) continue;
    forecast_->HearGate(gate.layer, gate.ahead, {.experts = grid_.experts, .scores = gate.scores});
  }
  for (const ExpertId id : absent) {
    if (cache_->Admit(id)) cache_->OnLoaded(id);
  }
}

ScoreTables ScoreLearner::Learned() && {
  ScoreTables tables = std::move(*forecast_).Learned();
  const auto tokens = static_cast<double>(std::max<std::uint64_t>(1, tokens_));
  for (const std::uint64_t uses : uses_) {
    tables.shares.push_back(static_cast<float>(static_cast<double>(uses) / tokens));
  }
  return tables;
}

}  // namespace troupe
