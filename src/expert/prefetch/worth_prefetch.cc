#include "expert/prefetch/worth_prefetch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

constexpr double kPaceWeight = 0.05;  // of the latest in a running mean
// The price of a load for nothing rises while more loads than this are made that demand alone would
// not have made, for each that it would; and falls while there are fewer.
constexpr double kMostExtraLoads = 0.08;
constexpr double kPriceStep = 0.01, kFirstPrice = 0.8, kHighestPrice = 4;
// A pass may begin long after the last one ended: nothing is known of that time.
constexpr double kLongestGap = 4;  // layers
constexpr std::size_t kMostUnderWay = 8;
// Of a load's time: the worth of one that is begun. Figures are means, and none is exact.
constexpr double kLeastWorth = 0.2;
constexpr double kKept = 0.3;    // chance from which on a resident is kept where it is
constexpr double kWanted = 0.1;  // below it a load that has not begun to be read is dropped

void Blend(double& mean, double latest, double weight = kPaceWeight) {
  mean += weight * (latest - mean);
}

// It was for nothing, or has pushed out what is asked for.
void OnExtraLoad(LinkPace& pace) {
  pace.regret = std::min(kHighestPrice, pace.regret + kPriceStep);
}

void OnNeededLoad(LinkPace& pace) {
  pace.regret = std::max(0.0, pace.regret - kMostExtraLoads * kPriceStep);
}

// That the layer will have to load something that is not on its way.
double ChanceOfDemand(const MissForecast::List& list, const ExpertCache& cache) {
  double none = 1;
  for (std::uint32_t e = 0; e < list.experts.size(); ++e) {
    if (cache.Find({list.layer, e}) == Residence::kAbsent) none *= 1 - list.experts[e].chance;
  }
  return 1 - none;
}

// Of the layers that ask while a load is being read, the mean.
double ChanceOfDemandSoon(const MissForecast& forecast, const ExpertCache& cache,
                          const LinkPace& now) {
  const double layers = now.idle_a_layer > 0 ? std::ceil(now.load / now.idle_a_layer) : 1;
  double sum = 0;
  std::uint32_t count = 0;
  for (const MissForecast::List& list : forecast.lists()) {
    if (forecast.LatestFor(list.layer) != &list) continue;
    if (static_cast<double>(list.due - forecast.asks()) > layers) continue;
    sum += ChanceOfDemand(list, cache);
    ++count;
  }
  return count > 0 ? sum / count : now.asks;
}

}  // namespace

Bytes WorthPrefetch::BytesFor(ExpertGrid grid) {
  return MissForecast::BytesFor(grid) + AheadLoads::BytesFor(grid);
}

WorthPrefetch::WorthPrefetch(ExpertCache& cache, std::uint32_t experts_per_token,
                             std::unique_ptr<Prefetcher> prompts, std::optional<ScoreTables> known)
    : cache_(cache),
      grid_(cache.shape().grid),
      prompts_(std::move(prompts)),
      loads_(grid_),
      forecast_(cache, loads_, experts_per_token, std::move(known)),
      pace_{.regret = kFirstPrice} {
  TROUPE_CHECK(prompts_ != nullptr);
}

std::uint32_t WorthPrefetch::forecast_layers() const {
  if (!predicts_) return prompts_->forecast_layers();
  return std::min({prompts_->predictor().forecast_layers(), kMostLayersAhead, forecast_.reach()});
}

void WorthPrefetch::OnPassBegins(const PassFacts& pass) {
  forecast_.OnPassBegins(pass);
  prompts_->OnPassBegins(pass);
  predicts_ = !pass.HasPrompt() && pass.rows() <= ScoreMap::kMostRows;
  if (predicts_) return;
  forecast_.Forget();
  kept_.clear();
  asked_at_.reset();
}

void WorthPrefetch::OnForecast(std::uint32_t layer, std::uint32_t ahead,
                               const GateScores& forecast) {
  if (!predicts_) return prompts_->OnForecast(layer, ahead, forecast);
  if (forecast.rows() == 0 || ahead > forecast_.reach()) return;
  forecast_.HearGate(layer, ahead, prompts_->predictor().Corrected(layer, ahead, forecast));
  KeepResidents(*forecast_.LatestFor(layer));
}

void WorthPrefetch::LearnPace(Nanos now) {
  if (asked_at_) {
    const double seconds = static_cast<double>(now - *asked_at_) * 1e-9;
    const double idle = std::max(0.0, seconds - demand_seconds_);
    if (pace_.idle_a_layer == 0) pace_.idle_a_layer = idle;
    Blend(pace_.idle_a_layer, std::min(idle, kLongestGap * pace_.idle_a_layer));
  }
  asked_at_ = now;
}

void WorthPrefetch::OnLayerAsks(const LayerChoices& choices, Nanos now) {
  layer_ = choices.layer();
  const std::span<const ExpertDemand> demands = choices.demands();
  if (!predicts_) {
    forecast_.OnOtherAsk(layer_, demands);
    return prompts_->OnLayerAsks(choices, now);
  }
  LearnPace(now);
  demand_seconds_ = 0;
  joined_ = 0;
  const MissForecast::Judged judged = forecast_.OnLayerAsks(layer_, demands, now, said_);
  foresight_.OnLayerAsks(demands, said_, now);
  stats_.asked += demands.size();  // foreseen or not
  stats_.guessed += judged.named;
  stats_.expected += judged.likely;
}

void WorthPrefetch::OnFound(ExpertId id, Residence residence) {
  if (!predicts_ || prompts_->IsAhead(id)) prompts_->OnFound(id, residence);
  if (loads_.WasDisplaced(id)) OnExtraLoad(pace_);
  loads_.ForgetDisplacing(id);
  if (residence != Residence::kAbsent) loads_.Forgive(id);
  if (predicts_ && id.layer == layer_) {
    const bool needed = IsMine(id) || residence != Residence::kResident;
    foresight_.OnFound(id.expert, needed);
    if (needed) OnNeededLoad(pace_);
    joined_ += residence == Residence::kLoading ? 1 : 0;
  }
  if (residence == Residence::kAbsent || !loads_.End(id)) return;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
}

// As many as a load takes, and some for what is queued before it. Where a load takes very many
// nothing is hidden.
std::uint32_t WorthPrefetch::LayersOfUse() const {
  constexpr double kTooMany = 16;
  if (pace_.idle_a_layer <= 0) return forecast_.reach();
  const double layers = pace_.load / pace_.idle_a_layer;
  return layers > kTooMany ? 1 : 2 + static_cast<std::uint32_t>(layers);
}

void WorthPrefetch::OnMisses(std::uint32_t misses, double load_seconds) {
  if (!predicts_) return prompts_->OnMisses(misses, load_seconds);
  // Of those that were under way half is still to come.
  demand_seconds_ = (misses + 0.5 * joined_) * load_seconds;
  pace_.load = load_seconds;
  Blend(pace_.asks, misses > 0 ? 1 : 0);
  foresight_.OnLoadSeconds(load_seconds);
  forecast_.Predict(LayersOfUse());
  for (const MissForecast::List& list : forecast_.lists()) {
    if (forecast_.LatestFor(list.layer) == &list) KeepResidents(list);
  }
}

// So that loads ahead do not push out what is needed as soon. They take no more than a quarter of
// the slots: the rest is the eviction policy's. What is no longer likely is not kept either.
void WorthPrefetch::KeepResidents(const MissForecast::List& list) {
  std::erase_if(kept_, [&](const ExpertCache::Pin& pin) {
    return pin.id().layer == list.layer && list.experts[pin.id().expert].chance < kWanted;
  });
  for (std::uint32_t e = 0; e < grid_.experts; ++e) {
    if (kept_.size() >= cache_.shape().slots / 4) return;
    const ExpertId id{list.layer, e};
    if (list.experts[e].chance < kKept || cache_.Find(id) != Residence::kResident) continue;
    const bool kept =
        std::ranges::any_of(kept_, [id](const ExpertCache::Pin& pin) { return pin.id() == id; });
    if (!kept) kept_.push_back(cache_.PinResident(id));
  }
}

LinkPace WorthPrefetch::pace() const {
  LinkPace pace = pace_;
  pace.held = link_.held_seconds;
  return pace;
}

LoadAhead WorthPrefetch::FactsOf(const MissForecast::List& list) const {
  const double since = static_cast<double>(link_.now - *asked_at_) * 1e-9;
  const double idle_so_far = std::max(0.0, since - demand_seconds_);
  return {.chance = 0,
          .ahead = static_cast<std::uint32_t>(list.due - forecast_.asks()),
          .idle_left = std::max(0.0, pace_.idle_a_layer - idle_so_far),
          .queued = link_.queued_seconds};
}

std::optional<ExpertId> WorthPrefetch::Next(std::size_t under_way) {
  if (!predicts_) return prompts_->Next(under_way);
  if (!asked_at_ || under_way >= kMostUnderWay) return std::nullopt;
  LinkPace now = pace();
  now.asks = ChanceOfDemandSoon(forecast_, cache_, now);
  std::optional<ExpertId> best;
  double most = kLeastWorth * now.load;
  for (const MissForecast::List& list : forecast_.lists()) {
    if (forecast_.LatestFor(list.layer) != &list) continue;
    LoadAhead facts = FactsOf(list);
    const double least = LeastChance(facts, now);
    for (std::uint32_t e = 0; e < grid_.experts; ++e) {
      const MissForecast::Predicted& predicted = list.experts[e];
      // One that was there and has gone since went for something better.
      if (!predicted.was_absent || predicted.chance < std::max(least, kWanted)) continue;
      facts.chance = predicted.chance;
      const double worth = WorthOfLoad(facts, now);
      if (worth <= most || cache_.Find({list.layer, e}) != Residence::kAbsent) continue;
      most = worth;
      best = {list.layer, e};
    }
  }
  return best;
}

void WorthPrefetch::OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) {
  if (!predicts_) return prompts_->OnLoadBegins(id, evicted);
  loads_.Begin(id, evicted);
  ++stats_.loads;
}

void WorthPrefetch::OnNoSlot(ExpertId id) {
  if (!predicts_) return prompts_->OnNoSlot(id);
  forecast_.OnNoSlot(id);
}

void WorthPrefetch::OnLoaded(ExpertId id) {
  if (!IsMine(id)) return prompts_->OnLoaded(id);
  if (IsWanted(id)) kept_.push_back(cache_.PinResident(id));
}

// Those of layers before it may be the next token's.
void WorthPrefetch::Release(std::uint32_t layer) {
  prompts_->Release(layer);
  std::erase_if(kept_, [layer](const ExpertCache::Pin& pin) { return pin.id().layer == layer; });
}

void WorthPrefetch::ReleaseAll() {
  prompts_->ReleaseAll();
  kept_.clear();
}

bool WorthPrefetch::IsWanted(ExpertId id) const {
  if (!predicts_) return prompts_->IsWanted(id);
  return forecast_.ChanceOf(id) >= kWanted;
}

bool WorthPrefetch::IsForecastInTail(ExpertId id, double share) const {
  return !predicts_ && prompts_->IsForecastInTail(id, share);
}

void WorthPrefetch::OnEvicted(ExpertId id, bool on_demand) {
  if (!IsMine(id)) return prompts_->OnEvicted(id, on_demand);
  loads_.End(id);
  loads_.Forgive(id);
  ++stats_.wasted;
  OnExtraLoad(pace_);
}

void WorthPrefetch::OnCancelled(ExpertId id) {
  if (!IsMine(id)) return prompts_->OnCancelled(id);
  loads_.End(id);
  loads_.Forgive(id);
  ++stats_.cancelled;
}

MissForesight WorthPrefetch::ForesightOf(ExpertId id, bool under_way, double load_seconds) const {
  if (!predicts_) return prompts_->ForesightOf(id, under_way, load_seconds);
  if (id.layer != layer_) return {.reads_ahead = true, .under_way = under_way};
  MissForesight told = foresight_.Of(id.expert);
  told.under_way = under_way;
  told.load_seconds = load_seconds;
  const LoadAhead facts{
      .chance = 0, .ahead = std::max(1u, told.ahead), .idle_left = pace_.idle_a_layer, .queued = 0};
  told.least_odds = std::min(1.0, LeastChance(facts, pace()));
  return told;
}

PrefetchStats WorthPrefetch::stats() const {
  PrefetchStats stats = prompts_->stats();
  stats.AddCounts(stats_);
  stats.foresight = foresight_.sums();
  stats.chances = forecast_.judged();
  stats.tokens_learned = forecast_.learned_tokens();
  stats.tokens_known = forecast_.known_tokens();
  return stats;
}

std::uint64_t WorthPrefetch::waiting() const { return prompts_->waiting() + loads_.count(); }

}  // namespace troupe
