// Learns beforehand what misses are predicted by (score_tables.h): plays a text's tokens one by
// one, as an answer's, through a cache of half of the experts that loads what is asked for and
// nothing ahead, and keeps what the forecast of misses has learned of it. What a token's layers
// said comes from whoever has the text; no clock, no file.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/cache/expert_cache.h"
#include "expert/forecast/predictor.h"
#include "expert/forecast/score_tables.h"
#include "expert/prefetch/ahead_loads.h"
#include "expert/prefetch/miss_forecast.h"

namespace troupe {

// What the gate of a layer said of one token `ahead` layers before it, corrected.
struct EarlyGate {
  std::uint32_t layer = 0, ahead = 0;
  std::span<const float> scores;
};

class ScoreLearner {
 public:
  static Bytes BytesFor(ExpertGrid grid);

  // Layers before `first_layer` have no experts.
  ScoreLearner(ExpertGrid grid, std::uint32_t experts_per_token, std::uint32_t first_layer);

  // Tokens of one text have rising positions; 0 begins another text. Several texts may take turns,
  // each a sequence of its own.
  void TokenBegins(std::uint32_t position, SequenceId sequence = 0);
  // A layer of the token, in the order in which it passes them: what the router said of all
  // experts, those that were chosen, and what gates of later layers say by now, if they were asked.
  void OnLayer(std::uint32_t layer, std::span<const float> scores,
               std::span<const std::uint32_t> chosen, std::span<const EarlyGate> gates);

  std::uint64_t tokens() const { return tokens_; }
  const JudgedChances& judged() const { return forecast_->judged(); }
  // It is of no use any more.
  ScoreTables Learned() &&;

 private:
  ExpertGrid grid_;
  std::uint32_t first_layer_;
  std::unique_ptr<ExpertCache> cache_;
  std::unique_ptr<AheadLoads> loads_;  // none ever begins
  std::unique_ptr<MissForecast> forecast_;
  std::vector<std::uint64_t> uses_;  // of each expert
  std::vector<ExpertDemand> demands_;
  std::vector<SaidOfExpert> said_;
  std::uint64_t tokens_ = 0;
};

}  // namespace troupe
