// Reads ahead what is worth it: of each pass of few decode rows, the chance of every absent expert
// of the next layers, across the token's end (miss_forecast.h), and of those the load that is worth
// the most, if it is worth anything (load_worth.h). It has no thresholds of its own
// and no trials: where nothing is to be gained no load begins.
//
// Passes with rows of a prompt, or of many sequences, use most experts of a layer whatever was
// predicted; they are left to a Prefetcher. Pure, as that is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "expert/prefetch/ahead_loads.h"
#include "expert/prefetch/foresight_count.h"
#include "expert/prefetch/load_worth.h"
#include "expert/prefetch/miss_forecast.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/prefetch/prefetching.h"

namespace troupe {

class WorthPrefetch final : public Prefetching {
 public:
  static constexpr std::string_view kName = "scores";
  // The predictor for the passes that it leaves alone.
  static constexpr std::string_view kForPrompts = "lookahead";
  static bool IsMeant(std::string_view predictor) { return predictor == kName; }
  static Bytes BytesFor(ExpertGrid grid);

  // The cache must outlive it. `prompts`: for the passes that it leaves alone. `known`: what its
  // forecasts begin with.
  WorthPrefetch(ExpertCache& cache, std::uint32_t experts_per_token,
                std::unique_ptr<Prefetcher> prompts,
                std::optional<ScoreTables> known = std::nullopt);

  std::uint32_t forecast_layers() const override;
  void OnPassBegins(const PassFacts& pass) override;
  void OnScores(std::uint32_t layer, std::span<const float> scores) override {
    forecast_.OnScores(layer, scores);
  }
  void OnGuessesChecked(std::span<const std::uint32_t> right) override {
    forecast_.OnGuessesChecked(right);
  }
  void OnLayerAsks(const LayerChoices& choices, Nanos now) override;
  void OnGuessRight(const LayerChoices& choices) override { prompts_->OnGuessRight(choices); }
  void OnFound(ExpertId id, Residence residence) override;
  void OnMisses(std::uint32_t misses, double load_seconds) override;
  void OnPause() override { asked_at_.reset(); }
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    prompts_->OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override;
  void OnLink(const LinkNow& link) override { link_ = link; }
  std::optional<ExpertId> Next(std::size_t under_way) override;
  bool is_sure() const override { return !predicts_ && prompts_->is_sure(); }
  void OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) override;
  void OnNoSlot(ExpertId id) override;
  void OnLoaded(ExpertId id) override;
  void Release(std::uint32_t layer) override;
  void ReleaseAll() override;
  bool IsWanted(ExpertId id) const override;
  bool IsAhead(ExpertId id) const override { return IsMine(id) || prompts_->IsAhead(id); }
  bool IsForecastInTail(ExpertId id, double share) const override;
  void OnEvicted(ExpertId id, bool on_demand = false) override;
  void OnFailed(ExpertId id) override { OnEvicted(id); }
  void OnCancelled(ExpertId id) override;

  MissForesight ForesightOf(ExpertId id, bool under_way, double load_seconds) const override;
  PrefetchStats stats() const override;
  std::uint64_t waiting() const override;
  std::uint64_t left_out() const override { return prompts_->left_out(); }

  const Prefetcher& prompts() const { return *prompts_; }
  LinkPace pace() const;

 private:
  bool IsMine(ExpertId id) const { return loads_.Has(id); }
  void LearnPace(Nanos now);
  std::uint32_t LayersOfUse() const;
  void KeepResidents(const MissForecast::List& list);
  LoadAhead FactsOf(const MissForecast::List& list) const;

  ExpertCache& cache_;
  ExpertGrid grid_;
  std::unique_ptr<Prefetcher> prompts_;
  AheadLoads loads_;
  MissForecast forecast_;

  std::vector<ExpertCache::Pin> kept_;
  PrefetchStats stats_;
  ForesightCount foresight_;
  std::vector<SaidOfExpert> said_;

  bool predicts_ = false;          // the pass under way
  std::uint32_t layer_ = 0;        // that asked last
  std::optional<Nanos> asked_at_;  // it did
  LinkNow link_;
  double demand_seconds_ = 0;  // of the link, by that layer
  std::uint32_t joined_ = 0;   // loads that it found under way
  LinkPace pace_;
};

}  // namespace troupe
