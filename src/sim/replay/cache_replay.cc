#include "sim/replay/cache_replay.h"

#include <algorithm>

namespace troupe {
namespace {

FlowOptions FlowOf(const TraceHeader& header, ReplaySetup& setup, bool second_lane) {
  FlowOptions options;
  options.routing = {.experts = header.experts,
                     .top_k = header.top_k,
                     .normalised = header.scores == ScoreKind::kChosenSoftmax};
  options.prefetch = setup.prefetch;
  options.by_worth = setup.by_worth;
  options.score_tables = std::move(setup.score_tables);
  options.in_order = true;
  options.miss_order = second_lane ? MissOrder::kWeight : MissOrder::kRows;
  if (!setup.foreseen) return options;
  options.read_ahead = [foreseen = *setup.foreseen](ExpertCache& cache) {
    return std::make_unique<ForeseenLoads>(cache, foreseen.layers_ahead, foreseen.future);
  };
  return options;
}

}  // namespace

void CountPass(const ReplayPass& pass, std::uint64_t hits, std::uint64_t asks,
               ReplayResult& result) {
  ReplayCounts& of_phase = pass.mixed                          ? result.mixed
                           : pass.phase == TracePhase::kDecode ? result.decode
                                                               : result.prefill;
  for (ReplayCounts* counts : {&result.all, &of_phase}) {
    counts->tokens += pass.tokens;
    ++counts->passes;
    counts->hits += hits;
    counts->asks += asks;
  }
}

CacheReplay::CacheReplay(const TraceHeader& header, ReplaySetup setup)
    : header_(header),
      costs_(std::move(setup.costs)),
      loads_(header_, costs_),
      flow_(std::move(setup.cache), std::move(setup.policy), std::move(setup.predictor), loads_,
            FlowOf(header_, setup, costs_.second_lane_seconds.has_value())) {
  result_.layers.resize(header.moe_layers.size());
  if (!setup.substitution) return;
  TROUPE_CHECK(setup.substitution->limits().most_tokens <= kMostRoutedTokens);
  flow_.set_substitution(std::move(*setup.substitution));
}

void CacheReplay::Collect() {
  flow_.OnLoadsEnded(loads_.TakeEnded(), static_cast<Nanos>(loads_.now() * 1e9));
}

void CacheReplay::Compute(double seconds) {
  loads_.Pass(seconds);
  result_.compute_seconds += seconds;
}

void CacheReplay::Play(const ReplayPass& pass) {
  const std::uint64_t hits = cache().stats().hits;
  std::uint64_t asks = 0;
  const Phase phase =
      pass.recorded && pass.phase == TracePhase::kPrefill ? Phase::kPrompt : Phase::kDecode;
  flow_.OnPassBegins(pass.facts.groups.empty()
                         ? OneGroup(header_.moe_layers.front(), phase, pass.tokens)
                         : pass.facts);
  for (std::size_t l = 0; l < pass.demands.size(); ++l) asks += PlayLayer(l, pass);
  CountPass(pass, cache().stats().hits - hits, asks, result_);
}

std::span<const ExpertDemand> CacheReplay::Route(std::size_t moe_layer, const ReplayPass& pass) {
  const std::uint32_t layer = header_.moe_layers[moe_layer];
  const bool substitutes = flow_.Substitutes();
  chosen_.clear();
  if (substitutes) chosen_ = pass.routes[moe_layer].chosen;
  const std::span<const float> scores =
      pass.routes.empty() ? std::span<const float>() : std::span(pass.routes[moe_layer].scores);
  flow_.OnRouted(layer, scores, chosen_);
  needed_.clear();
  tokens_.assign(header_.experts, 0);
  if (!substitutes) {
    if (!pass.by_group.empty()) flow_.OnCounted(layer, pass.by_group[moe_layer]);
    needed_ = pass.demands[moe_layer];
    for (const ExpertDemand& demand : needed_) tokens_[demand.expert] = demand.tokens;
    if (costs_.second_lane_seconds) Weigh(pass.routes[moe_layer].chosen);
    return needed_;
  }
  for (const ExpertChoice& choice : chosen_) {
    if (choice.expert != kNoExpert) ++tokens_[choice.expert];
  }
  for (std::uint32_t e = 0; e < header_.experts; ++e) {
    if (tokens_[e] > 0) needed_.push_back({.expert = e, .tokens = tokens_[e]});
  }
  if (costs_.second_lane_seconds) Weigh(chosen_);
  return needed_;
}

void CacheReplay::Weigh(std::span<const ExpertChoice> chosen) {
  for (ExpertDemand& demand : needed_) {
    for (const ExpertChoice& slot : chosen) {
      if (slot.expert == demand.expert) demand.weight = std::max(demand.weight, slot.weight);
    }
  }
}

std::uint64_t CacheReplay::PlayLayer(std::size_t moe_layer, const ReplayPass& pass) {
  const std::uint32_t layer = header_.moe_layers[moe_layer];
  // What ended since is there, and what may be read ahead now is asked for before the layer's own
  // work begins. Then the pins of the layer before are given up.
  Collect();
  flow_.Continue();
  Compute(costs_.layer_first_seconds + (pass.tokens - 1) * costs_.layer_further_seconds);
  if (demand_) flow_.Close(*demand_);
  Collect();
  const std::uint64_t hits = cache().stats().hits;
  const std::span<const ExpertDemand> demands = Route(moe_layer, pass);
  demand_ = flow_.Ask(layer, demands, static_cast<Nanos>(loads_.now() * 1e9));
  const double elsewhere_until = BusyElsewhere();
  ReplayCounts& counts = result_.layers[moe_layer];
  counts.tokens += pass.tokens;
  ++counts.passes;
  counts.asks += demands.size();
  counts.hits += cache().stats().hits - hits;
  const bool followed =
      moe_layer + 1 < header_.moe_layers.size() && header_.moe_layers[moe_layer + 1] == layer + 1;
  if (followed) flow_.OnForecast(layer + 1, /*ahead=*/1, {});
  GiveAll(layer);
  if (const double left = elsewhere_until - loads_.now(); left > 0) {
    result_.stall_seconds += left;
    loads_.Pass(left);
  }
  return demands.size();
}

double CacheReplay::DoneWhileWaiting(std::uint32_t layer, double waited, double seconds) {
  if (waited <= 0 || costs_.begin_share >= 1) return 0;
  const double rest = (1 - costs_.begin_share) * loads_.SecondsFor(layer);
  const double done = std::min({waited, rest, costs_.begin_share * seconds});
  ++result_.begun_early;
  result_.stall_seconds -= done;
  result_.compute_seconds += done;
  return done;
}

double CacheReplay::BusyElsewhere() {
  const std::size_t experts = flow_.Elsewhere(*demand_).size();
  return loads_.now() + static_cast<double>(experts) * costs_.second_lane_seconds.value_or(0);
}

// As the engine takes experts: what is there first, then others as they come.
void CacheReplay::GiveAll(std::uint32_t layer) {
  for (bool first = true; !flow_.IsDone(*demand_); first = false) {
    flow_.LetGo(*demand_);
    flow_.Continue();
    if (first && !flow_.Unplaced(*demand_).empty()) ++result_.crowded;
    Collect();
    const double start = loads_.now();
    while (!first && flow_.MustWait(*demand_)) {
      loads_.PassToNextEnd();
      Collect();
    }
    const double waited = loads_.now() - start;
    result_.stall_seconds += waited;
    const Result<std::span<const Given>> given = flow_.Give(*demand_);
    TROUPE_CHECK(given.ok() && (first || !given->empty()));
    for (const Given& expert : *given) {
      const double seconds = costs_.ExpertSeconds(tokens_[expert.expert]);
      // Of several the last one is what was waited for.
      const bool last = expert.expert == given->back().expert;
      const double done = last ? DoneWhileWaiting(layer, waited, seconds) : 0;
      Compute(seconds - done);
    }
  }
}

ReplayResult CacheReplay::result() const {
  ReplayResult result = result_;
  result.cache = cache().stats();
  result.prefetch = flow_.prefetch().stats();
  result.loads = loads_.loads();
  result.bytes = loads_.bytes();
  result.reading_seconds = loads_.reading_seconds();
  result.elsewhere = flow_.usage().elsewhere;
  if (const SubstitutionChain* chain = flow_.substitution()) result.substitution = chain->Report();
  return result;
}

}  // namespace troupe
