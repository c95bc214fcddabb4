#include "expert/prefetch/foresight_count.h"

#include <algorithm>

#include "expert/forecast/predictor.h"
#include "expert/forecast/score_map.h"

namespace troupe {

static_assert(kForesightLayers >= kMostLayersAhead && kForesightLayers >= ScoreMap::kMostReach);

void ForesightCount::OnLayerAsks(std::span<const ExpertDemand> demands,
                                 std::span<const SaidOfExpert> said, Nanos now) {
  said_.assign(said.begin(), said.end());
  now_ = now;
  leads_.clear();
  unfound_.clear();
  for (const ExpertDemand& demand : demands) unfound_.push_back(demand.expert);
  for (const SaidOfExpert& guess : said_) {
    if (!guess.was_absent || guess.odds < kLikely) continue;
    ForesightFrom& from = sums_.from[guess.ahead - 1];
    ++from.guesses;
    from.came_true += std::ranges::count(unfound_, guess.expert) > 0 ? 1 : 0;
  }
}

void ForesightCount::OnOtherPass() {
  unfound_.clear();
  said_.clear();
  leads_.clear();
}

void ForesightCount::OnFound(std::uint32_t expert, bool needed) {
  if (std::erase(unfound_, expert) == 0 || !needed) return;
  ++sums_.needed;
  for (const SaidOfExpert& guess : said_) {
    if (guess.expert != expert) continue;
    ++sums_.from[guess.ahead - 1].named;
    sums_.from[guess.ahead - 1].likely += guess.odds >= kLikely ? 1 : 0;
  }
  const SaidOfExpert* best = Best(expert);
  if (best == nullptr) return;
  ++sums_.named;
  if (best->odds < kLikely) return;
  ++sums_.likely;
  leads_.push_back(now_ - best->when);
}

void ForesightCount::OnLoadSeconds(double load_seconds) {
  for (const Nanos lead : leads_) {
    sums_.in_time += load_seconds > 0 && static_cast<double>(lead) * 1e-9 >= load_seconds ? 1 : 0;
  }
  leads_.clear();
}

const SaidOfExpert* ForesightCount::Best(std::uint32_t expert) const {
  const SaidOfExpert* best = nullptr;
  for (const SaidOfExpert& guess : said_) {
    if (guess.expert != expert) continue;
    if (guess.odds >= kLikely) return &guess;
    if (best == nullptr || guess.odds > best->odds) best = &guess;
  }
  return best;
}

MissForesight ForesightCount::Of(std::uint32_t expert) const {
  MissForesight told{.reads_ahead = true};
  const SaidOfExpert* best = Best(expert);
  if (best == nullptr) return told;
  told.ahead = best->ahead;
  told.odds = best->odds;
  told.lead_seconds = static_cast<double>(now_ - best->when) * 1e-9;
  // As it was known at last.
  told.taken_back = true;
  for (const SaidOfExpert& guess : said_) {
    if (guess.expert != expert) continue;
    told.was_absent = guess.was_absent;
    told.no_slot = told.no_slot || guess.no_slot;
    told.taken_back = guess.ahead != said_.back().ahead;
  }
  return told;
}

}  // namespace troupe
