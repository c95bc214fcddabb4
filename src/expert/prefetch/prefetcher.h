// What to load before it is asked for: a predictor's guesses for the layers to come, less what is
// there, the likeliest first, as many as the governor allows. Also the book of what became of each
// prefetch. Pure: it sees the cache, and time and the link's speed come in as arguments; the
// loading is done by whoever asks it what is next.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "expert/prefetch/ahead_loads.h"
#include "expert/prefetch/foresight_count.h"
#include "expert/prefetch/governor.h"
#include "expert/prefetch/odds.h"
#include "expert/prefetch/prefetching.h"

namespace troupe {

struct PrefetchOptions {
  bool governed = true;  // without the governor every guess that a layer has time for is loaded
  GovernorOptions governor;
};

// Prompts and decode differ in what is worth reading ahead, so a pass says which it is; one with
// rows of both follows the rule of prompts, whose many rows decide what is asked for.
class Prefetcher final : public Prefetching {
 public:
  // The cache must outlive it.
  Prefetcher(ExpertCache& cache, std::uint32_t experts_per_token,
             std::unique_ptr<Predictor> predictor, const PrefetchOptions& options = {});

  std::uint32_t forecast_layers() const override;
  bool forecasts_with_answers() const override { return predictor_->forecasts_with_answers(); }
  void OnPassBegins(const PassFacts& pass) override;
  void OnLayerAsks(const LayerChoices& choices, Nanos now) override;
  void OnGuessRight(const LayerChoices& choices) override { predictor_->OnChosen(choices); }
  void OnFound(ExpertId id, Residence residence) override;
  void OnMisses(std::uint32_t misses, double load_seconds) override;
  void OnGateScores(std::uint32_t layer, const GateScores& said) override {
    predictor_->OnGateScores(layer, said);
  }
  void OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) override;
  std::optional<ExpertId> Next(std::size_t under_way) override;
  bool is_sure() const override { return prompt_ && rows_ >= 8; }
  void OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) override;
  void OnLoaded(ExpertId id) override;
  void Release(std::uint32_t layer) override;
  void ReleaseAll() override { kept_.clear(); }
  bool IsWanted(ExpertId id) const override;
  bool IsAhead(ExpertId id) const override { return loads_.Has(id); }
  bool IsForecastInTail(ExpertId id, double share) const override;
  void OnEvicted(ExpertId id, bool on_demand = false) override;
  void OnFailed(ExpertId id) override { OnEvicted(id); }
  void OnCancelled(ExpertId id) override;

  void OnNoSlot(ExpertId id) override;
  MissForesight ForesightOf(ExpertId id, bool under_way, double load_seconds) const override;
  PrefetchStats stats() const override;
  std::uint64_t waiting() const override { return loads_.count(); }
  std::uint64_t left_out() const override { return predictor_->left_out(); }
  // Of the pass under way, by what the governor compares passes: experts that had to be loaded,
  // whether ahead or on demand. One that is missing because a guess that nobody asked for took its
  // slot is not among them: that is what reading ahead costs.
  std::uint32_t loads_needed() const { return loads_needed_; }
  const PrefetchGovernor& governor() const { return governor_; }
  const PrefetchOdds& odds() const { return odds_; }
  const Predictor& predictor() const { return *predictor_; }
  Predictor& predictor() { return *predictor_; }

 private:
  struct Listed {
    Guess guess;
    bool was_absent = false;  // when it was guessed
    bool no_slot = false;     // its load found none
    double odds = 0;          // when it was guessed
  };
  // What was guessed of a layer from one distance.
  struct List {
    std::uint32_t layer = 0;
    std::uint32_t ahead = 0;  // 0: of the first layer, before anything was known
    Nanos made = 0;
    std::vector<Listed> guesses;
  };

  bool IsGoverned() const { return options_.governed && !prompt_; }
  // Of a decode pass: a list for several rows has each row's first guess before any second one, so
  // places count by rows and one table of odds serves passes of any size.
  std::size_t PlaceOfRow(std::size_t place) const;
  void AddList(std::uint32_t layer, std::uint32_t ahead, std::span<const Guess> guesses);
  const List* LatestFor(std::uint32_t layer) const;
  void Judge(std::uint32_t layer, std::span<const ExpertDemand> demands);
  void CountForesight(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now);
  bool WorthLoading(const List& list, std::size_t place) const;
  bool IsKept(ExpertId id) const;
  void KeepResidents(const List& list);
  void NoteLookup(ExpertId id, Residence residence);
  void NoteUse(bool useful);

  ExpertCache& cache_;
  ExpertGrid grid_;
  std::uint32_t experts_per_token_;
  std::unique_ptr<Predictor> predictor_;
  PrefetchOptions options_;
  PrefetchGovernor governor_;
  PrefetchOdds odds_;

  AheadLoads loads_;
  std::vector<List> lists_;  // for the layers to come, in the order in which they were made
  std::vector<ExpertCache::Pin> kept_;
  PrefetchStats stats_;
  ForesightCount foresight_;
  std::vector<SaidOfExpert> said_;  // of the layer that asks

  // The pass under way.
  bool in_pass_ = false;
  std::uint32_t layer_ = 0;
  std::uint32_t end_layer_;  // as PassFacts', at most the grid's
  bool prompt_ = false;      // it has rows of a prompt
  bool guessed_ = false;     // it has rows of a draft: another number in every pass
  std::uint32_t rows_ = 0;
  std::uint32_t decode_rows_ = 0;  // of the last pass that was decode alone
  Nanos pass_began_ = 0, layer_began_ = 0;
  double demand_seconds_ = 0, needed_seconds_ = 0;  // of the link, by the layer
  std::uint32_t layer_loads_ = 0;                   // on demand or ahead
  std::uint32_t loads_needed_ = 0;
};

}  // namespace troupe
