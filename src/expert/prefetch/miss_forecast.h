// What is predicted of the next layers, across the token's end: for each expert the chance that its
// layer asks for it, of absent ones calibrated by what came of others before (miss_chance.h). Made
// after each ask of what routers have said (score_map.h), and where gates are asked early of what
// they say. Kept until the layer asks; the latest forecast of a layer counts, all are learned from.
//
// Passes of few decode rows. Pure; decides nothing (worth_prefetch.h does).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "expert/cache/expert_cache.h"
#include "expert/forecast/judged_chances.h"
#include "expert/forecast/miss_chance.h"
#include "expert/forecast/predictor.h"
#include "expert/forecast/score_map.h"
#include "expert/forecast/score_tables.h"
#include "expert/prefetch/ahead_loads.h"
#include "expert/prefetch/foresight_count.h"

namespace troupe {

class MissForecast {
 public:
  struct Predicted {
    ExpertSigns signs;
    double chance = 0;
    bool was_absent = false;  // when it was predicted
    bool no_slot = false;     // its load found none
    // It was absent or had been read ahead: if the layer asks for it, it has to be loaded. What
    // chance it was given as such, as a bin of a histogram.
    bool to_load = false;
    std::uint8_t bin = 0;
  };
  // What was predicted of a layer from one distance.
  struct List {
    std::uint64_t due = 0;  // the ask that it is about, counted from the first one
    std::uint32_t layer = 0;
    std::uint32_t ahead = 0;
    bool next_token = false;  // it lies past the token's end
    Nanos made = 0;
    std::vector<Predicted> experts = {};
  };
  // From which chance on an expert counts as predicted.
  static constexpr double kNamed = 0.05;

  static Bytes BytesFor(ExpertGrid grid);

  // The cache, and the book of what is read ahead by these forecasts, must outlive it.
  // `known`: what it need not learn any more. REQUIRES: of the cache's grid.
  MissForecast(const ExpertCache& cache, const AheadLoads& loads, std::uint32_t experts_per_token,
               std::optional<ScoreTables> known = std::nullopt);

  void OnPassBegins(const PassFacts& pass) { map_.OnPassBegins(pass); }
  void OnScores(std::uint32_t layer, std::span<const float> scores) {
    map_.OnScores(layer, scores);
  }
  void OnGuessesChecked(std::span<const std::uint32_t> right) { map_.OnGuessesChecked(right); }
  // A layer asks, in a pass that nothing is predicted of.
  void OnOtherAsk(std::uint32_t layer, std::span<const ExpertDemand> demands);
  // A layer asks: what was said of it is learned from, and told. Lists are the next layers' then.
  // Returns how many of the demands were predicted, and how many with odds of a half or more.
  struct Judged {
    std::uint32_t named = 0, likely = 0;
  };
  Judged OnLayerAsks(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now,
                     std::vector<SaidOfExpert>& said);
  // After OnLayerAsks, and after the cache was asked. Predicts as many layers as tables reach.
  void Predict(std::uint32_t layers_ahead);
  // What the gate of a layer says of the rows, asked early and corrected.
  void HearGate(std::uint32_t layer, std::uint32_t ahead, const GateScores& said);
  void Forget() { lists_.clear(); }

  // What it has learned, but for the shares; it is of no use any more.
  ScoreTables Learned() &&;

  std::uint32_t reach() const { return map_.reach(); }
  // Tokens that its map was learned from, those of what it began with too.
  std::uint64_t learned_tokens() const { return map_.learned_tokens(); }
  std::uint64_t known_tokens() const { return known_tokens_; }  // of what it began with
  // What came of the chances of experts that had to be loaded, whatever was begun of them.
  const JudgedChances& judged() const { return judged_; }
  // The ask that comes next is this one plus one.
  std::uint64_t asks() const { return asks_; }
  std::span<const List> lists() const { return lists_; }
  // Null: there is none.
  const List* LatestFor(std::uint32_t layer) const;
  // By the latest forecast of its layer; 0 without one.
  double ChanceOf(ExpertId id) const;
  void OnNoSlot(ExpertId id);

 private:
  bool JoinRows(std::uint32_t ahead);
  List& AddList(std::uint32_t layer, std::uint32_t ahead);
  List& ListOf(std::uint32_t layer, std::uint32_t ahead);
  void Weigh(List& list);

  const ExpertCache& cache_;
  const AheadLoads& loads_;
  ExpertGrid grid_;
  std::uint32_t experts_per_token_;
  std::uint64_t known_tokens_;
  ScoreMap map_;
  ExpertPopularity popularity_;
  MissChance chance_;

  std::vector<List> lists_;  // in the order in which they were made
  std::vector<List> spare_;
  std::vector<float> joined_logits_, sorted_;  // of a forecast
  JudgedChances judged_;
  std::uint64_t asks_ = 0;
  std::uint32_t asked_layer_ = 0;  // the last of them
  Nanos asked_at_ = 0;
};

}  // namespace troupe
