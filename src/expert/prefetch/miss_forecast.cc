#include "expert/prefetch/miss_forecast.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

double ChanceOfLogit(float logit) {
  return 1 / (1 + std::exp(-static_cast<double>(std::clamp(logit, -20.0f, 20.0f))));
}

ScoreTables* PointerTo(std::optional<ScoreTables>& known) { return known ? &*known : nullptr; }

}  // namespace

Bytes MissForecast::BytesFor(ExpertGrid grid) {
  // From each distance of each layer ahead, and some that are used again.
  const std::size_t lists = std::size_t{ScoreMap::kMostReach} * (ScoreMap::kMostReach + 1);
  return ScoreMap::BytesFor(grid) + ExpertPopularity::BytesFor(grid) +
         Bytes(lists * grid.experts * sizeof(Predicted) + 2 * grid.experts * sizeof(float) +
               sizeof(JudgedChances));
}

MissForecast::MissForecast(const ExpertCache& cache, const AheadLoads& loads,
                           std::uint32_t experts_per_token, std::optional<ScoreTables> known)
    : cache_(cache),
      loads_(loads),
      grid_(cache.shape().grid),
      experts_per_token_(std::max(1u, experts_per_token)),
      known_tokens_(known ? known->tokens : 0),
      map_(grid_, experts_per_token_, PointerTo(known)),
      popularity_(grid_, experts_per_token_, PointerTo(known)),
      chance_(map_.reach(), PointerTo(known)),
      joined_logits_(grid_.experts),
      sorted_(grid_.experts) {}

ScoreTables MissForecast::Learned() && {
  ScoreTables learned;
  map_.MoveTo(learned);
  chance_.CopyTo(learned);
  return learned;
}

void MissForecast::OnOtherAsk(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  ++asks_;
  asked_layer_ = layer;
  popularity_.OnAsked(layer, demands);
}

MissForecast::Judged MissForecast::OnLayerAsks(std::uint32_t layer,
                                               std::span<const ExpertDemand> demands, Nanos now,
                                               std::vector<SaidOfExpert>& said) {
  OnOtherAsk(layer, demands);
  asked_at_ = now;
  said.clear();
  std::vector<bool> asked(grid_.experts);
  for (const ExpertDemand& demand : demands) asked[demand.expert] = true;
  Judged judged;
  for (const List& list : lists_) {
    if (list.due != asks_ || list.layer != layer) continue;
    judged = {};  // the latest forecast counts
    auto& histograms = list.next_token ? judged_.next_token : judged_.same_token;
    for (std::uint32_t e = 0; e < grid_.experts; ++e) {
      const Predicted& predicted = list.experts[e];
      if (predicted.to_load) histograms[list.ahead - 1].Count(predicted.bin, asked[e]);
      if (predicted.was_absent) chance_.Learn(list.ahead, predicted.signs, asked[e]);
      if (predicted.chance < kNamed) continue;
      said.push_back({.expert = e,
                      .ahead = list.ahead,
                      .odds = predicted.chance,
                      .when = list.made,
                      .was_absent = predicted.was_absent,
                      .no_slot = predicted.no_slot});
      if (!asked[e]) continue;
      ++judged.named;
      judged.likely += predicted.chance >= ForesightCount::kLikely ? 1 : 0;
    }
  }
  std::erase_if(lists_, [this](List& list) {
    if (list.due > asks_) return false;
    spare_.push_back(std::move(list));
    return true;
  });
  return judged;
}

void MissForecast::Predict(std::uint32_t layers_ahead) {
  map_.Look(layers_ahead);
  for (std::uint32_t ahead = 1; ahead <= std::min(layers_ahead, map_.reach()); ++ahead) {
    const std::optional<std::uint32_t> layer = map_.LayerAhead(ahead);
    if (!layer || !JoinRows(ahead)) return;
    List& list = AddList(*layer, ahead);
    std::ranges::copy(joined_logits_, sorted_.begin());
    const std::size_t chosen =
        std::min<std::size_t>(grid_.experts, experts_per_token_ * map_.rows());
    const auto last_chosen = sorted_.begin() + static_cast<std::ptrdiff_t>(chosen) - 1;
    std::ranges::nth_element(sorted_, last_chosen, std::greater());
    for (std::uint32_t e = 0; e < grid_.experts; ++e) {
      list.experts[e].signs.logit = joined_logits_[e];
      list.experts[e].signs.margin = joined_logits_[e] - *last_chosen;
    }
    Weigh(list);
  }
}

bool MissForecast::JoinRows(std::uint32_t ahead) {
  for (std::size_t row = 0; row < map_.rows(); ++row) {
    const std::span<const float> logits = map_.Predict(row, ahead);
    if (logits.empty()) return false;
    for (std::size_t e = 0; e < logits.size(); ++e) {
      if (row == 0) {
        joined_logits_[e] = logits[e];
        continue;
      }
      const double none = (1 - ChanceOfLogit(joined_logits_[e])) * (1 - ChanceOfLogit(logits[e]));
      joined_logits_[e] = static_cast<float>(std::log((1 - none) / std::max(none, 1e-9)));
    }
  }
  return map_.rows() > 0;
}

// Of which nothing is known yet but how often its experts are asked for.
MissForecast::List& MissForecast::AddList(std::uint32_t layer, std::uint32_t ahead) {
  if (spare_.empty()) spare_.emplace_back();
  lists_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  List& list = lists_.back();
  list.due = asks_ + ahead;
  list.layer = layer;
  list.ahead = ahead;
  list.next_token = layer <= asked_layer_;
  list.made = asked_at_;
  list.experts.assign(grid_.experts, {});
  for (std::uint32_t e = 0; e < grid_.experts; ++e) {
    Predicted& predicted = list.experts[e];
    popularity_.Describe({layer, e}, predicted.signs);
    predicted.signs.logit = predicted.signs.popularity;
    predicted.was_absent = cache_.IsMissing({layer, e});
    predicted.to_load = predicted.was_absent || loads_.Has({layer, e});
  }
  return list;
}

// That was made of the layer by the one that has just asked.
MissForecast::List& MissForecast::ListOf(std::uint32_t layer, std::uint32_t ahead) {
  const auto found = std::ranges::find_if(lists_, [&](const List& list) {
    return list.due == asks_ + ahead && list.ahead == ahead && list.layer == layer;
  });
  return found != lists_.end() ? *found : AddList(layer, ahead);
}

void MissForecast::HearGate(std::uint32_t layer, std::uint32_t ahead, const GateScores& said) {
  List& list = ListOf(layer, ahead);
  const auto chosen = static_cast<std::ptrdiff_t>(std::min(experts_per_token_, grid_.experts - 1));
  for (std::size_t r = 0; r < said.rows(); ++r) {
    const std::span<const float> row = said.Row(r);
    double sum = 0, squares = 0;
    for (const float score : row) {
      sum += static_cast<double>(score);
      squares += static_cast<double>(score) * static_cast<double>(score);
    }
    const auto count = static_cast<double>(row.size());
    const double variance = squares / count - sum / count * (sum / count);
    if (!(variance > 1e-12)) continue;
    std::ranges::copy(row, sorted_.begin());
    std::ranges::nth_element(sorted_, sorted_.begin() + chosen, std::greater());
    const float boundary = sorted_[static_cast<std::size_t>(chosen)];
    const auto scale = static_cast<float>(1 / std::sqrt(variance));
    for (std::uint32_t e = 0; e < grid_.experts; ++e) {
      ExpertSigns& signs = list.experts[e].signs;
      const float above = (row[e] - boundary) * scale;
      signs.gate = signs.has_gate ? std::max(signs.gate, above) : above;
      signs.has_gate = true;
    }
  }
  Weigh(list);
}

void MissForecast::Weigh(List& list) {
  for (Predicted& predicted : list.experts) {
    const ExpertSigns& signs = predicted.signs;
    const double of_load = predicted.to_load ? chance_.Of(list.ahead, signs) : 0;
    predicted.bin = static_cast<std::uint8_t>(ChanceHistogram::BinOf(of_load));
    predicted.chance = predicted.was_absent
                           ? of_load
                           : ChanceOfLogit(signs.has_gate ? 2 * signs.gate : signs.logit);
  }
}

const MissForecast::List* MissForecast::LatestFor(std::uint32_t layer) const {
  const auto latest = std::ranges::find(lists_.rbegin(), lists_.rend(), layer, &List::layer);
  return latest == lists_.rend() ? nullptr : &*latest;
}

double MissForecast::ChanceOf(ExpertId id) const {
  const List* list = LatestFor(id.layer);
  return list == nullptr ? 0 : list->experts[id.expert].chance;
}

void MissForecast::OnNoSlot(ExpertId id) {
  for (List& list : lists_) {
    if (list.layer == id.layer) list.experts[id.expert].no_slot = true;
  }
}

}  // namespace troupe
