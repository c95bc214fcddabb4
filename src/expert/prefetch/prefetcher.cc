#include "expert/prefetch/prefetcher.h"

#include <algorithm>
#include <utility>

#include "expert/substitution/low_copies.h"

namespace troupe {

Prefetcher::Prefetcher(ExpertCache& cache, std::uint32_t experts_per_token,
                       std::unique_ptr<Predictor> predictor, const PrefetchOptions& options)
    : cache_(cache),
      grid_(cache.shape().grid),
      experts_per_token_(std::max(1u, experts_per_token)),
      predictor_(std::move(predictor)),
      options_(options),
      governor_(options.governor),
      odds_(2 * experts_per_token_),
      loads_(grid_),
      end_layer_(grid_.layers) {
  TROUPE_CHECK(predictor_ != nullptr);
}

std::uint32_t Prefetcher::forecast_layers() const {
  const std::uint32_t most = std::min(predictor_->forecast_layers(), kMostLayersAhead);
  return IsGoverned() ? std::min(most, governor_.LayersAhead()) : most;
}

void Prefetcher::OnPassBegins(const PassFacts& pass) {
  // What lies between two passes is the caller's time, so a pass's is counted from its first layer
  // with experts to its last. One that was cut short by an error says nothing.
  if (in_pass_ && !prompt_ && !guessed_ && layer_ + 1 == end_layer_) {
    governor_.OnToken(static_cast<double>(layer_began_ - pass_began_) * 1e-9, loads_needed_);
  }
  in_pass_ = false;
  end_layer_ = std::min(pass.end_layer, grid_.layers);
  lists_.clear();
  prompt_ = pass.HasPrompt();
  rows_ = pass.rows();
  guessed_ = pass.guessed() > 0;
  if (!prompt_ && !guessed_) {
    // Passes of another number of rows take another time, whatever is read ahead.
    if (decode_rows_ != 0 && decode_rows_ != rows_) governor_.OnOtherPasses();
    decode_rows_ = rows_;
  }
  predictor_->OnPassBegins(pass);
  if (!pass.HasExperts()) return;
  if (std::size_t{rows_} * experts_per_token_ < 4 * std::size_t{grid_.experts}) return;
  std::vector<Guess> all(grid_.experts);
  for (std::uint32_t e = 0; e < grid_.experts; ++e) all[e] = {.expert = e, .expected = true};
  AddList(pass.first_layer, 0, all);
}

std::size_t Prefetcher::PlaceOfRow(std::size_t place) const {
  // A forecast is of no more rows than these.
  return place / std::clamp<std::size_t>(rows_, 1, kMostForecastRows);
}

void Prefetcher::OnLayerAsks(const LayerChoices& choices, Nanos now) {
  const std::uint32_t layer = choices.layer();
  const std::span<const ExpertDemand> demands = choices.demands();
  if (std::exchange(in_pass_, true)) {
    if (!prompt_) {
      governor_.OnLayer(static_cast<double>(now - layer_began_) * 1e-9, demand_seconds_,
                        needed_seconds_);
    }
  } else {
    pass_began_ = now;
    loads_needed_ = 0;
  }
  Judge(layer, demands);
  CountForesight(layer, demands, now);
  std::erase_if(lists_, [layer](const List& list) { return list.layer <= layer; });
  layer_ = layer;
  layer_began_ = now;
  demand_seconds_ = needed_seconds_ = 0;
  layer_loads_ = 0;
  predictor_->OnChosen(choices);
}

// What the layer asks for against what was guessed of it.
void Prefetcher::Judge(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  const auto asked = [demands](std::uint32_t expert) {
    return std::ranges::find(demands, expert, &ExpertDemand::expert) != demands.end();
  };
  for (const List& list : lists_) {
    if (list.layer != layer || prompt_ || list.ahead == 0) continue;
    for (std::size_t place = 0; place < list.guesses.size(); ++place) {
      const Listed& listed = list.guesses[place];
      if (listed.was_absent)
        odds_.OnOutcome(list.ahead, PlaceOfRow(place), asked(listed.guess.expert));
    }
  }
  // All of them, or what nobody guessed would look as if it had been foreseen.
  stats_.asked += demands.size();
  const List* latest = LatestFor(layer);
  if (latest == nullptr || latest->ahead == 0) return;
  for (const Listed& listed : latest->guesses) {
    if (!asked(listed.guess.expert)) continue;
    ++stats_.guessed;
    stats_.expected += listed.guess.expected ? 1 : 0;
  }
}

void Prefetcher::CountForesight(std::uint32_t layer, std::span<const ExpertDemand> demands,
                                Nanos now) {
  if (prompt_) return foresight_.OnOtherPass();
  said_.clear();
  for (const List& list : lists_) {
    if (list.layer != layer || list.ahead == 0) continue;
    for (const Listed& listed : list.guesses) {
      said_.push_back({.expert = listed.guess.expert,
                       .ahead = list.ahead,
                       .odds = listed.odds,
                       .when = list.made,
                       .was_absent = listed.was_absent,
                       .no_slot = listed.no_slot});
    }
  }
  foresight_.OnLayerAsks(demands, said_, now);
}

void Prefetcher::OnNoSlot(ExpertId id) {
  for (List& list : lists_) {
    if (list.layer != id.layer) continue;
    for (Listed& listed : list.guesses) {
      if (listed.guess.expert == id.expert) listed.no_slot = true;
    }
  }
}

MissForesight Prefetcher::ForesightOf(ExpertId id, bool under_way, double load_seconds) const {
  if (id.layer != layer_ || prompt_) return {.reads_ahead = true, .under_way = under_way};
  MissForesight told = foresight_.Of(id.expert);
  told.under_way = under_way;
  told.load_seconds = load_seconds;
  if (!IsGoverned()) return told;
  told.held_back = governor_.resting() || governor_.wasted_share() > options_.governor.most_wasted;
  told.least_odds = governor_.LeastOdds();
  return told;
}

PrefetchStats Prefetcher::stats() const {
  PrefetchStats stats = stats_;
  stats.foresight = foresight_.sums();
  return stats;
}

const Prefetcher::List* Prefetcher::LatestFor(std::uint32_t layer) const {
  const auto latest = std::ranges::find(lists_.rbegin(), lists_.rend(), layer, &List::layer);
  return latest == lists_.rend() ? nullptr : &*latest;
}

void Prefetcher::OnFound(ExpertId id, Residence residence) {
  NoteLookup(id, residence);
  if (id.layer == layer_) {
    foresight_.OnFound(id.expert, IsAhead(id) || residence != Residence::kResident);
  }
  if (residence == Residence::kAbsent || !loads_.End(id)) return;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
  NoteUse(true);
}

void Prefetcher::NoteLookup(ExpertId id, Residence residence) {
  // While the governor compares, tokens without prefetching still miss what guesses before pushed
  // out.
  const bool displaced = loads_.WasDisplaced(id);
  const bool loaded = IsAhead(id) || residence != Residence::kResident;
  layer_loads_ += loaded ? 1 : 0;
  // The last layer's loads end after the time that is compared.
  const bool counts = layer_ + 1 < end_layer_ && (!displaced || governor_.resting());
  loads_needed_ += loaded && counts ? 1 : 0;
  loads_.ForgetDisplacing(id);
  if (residence != Residence::kAbsent) loads_.Forgive(id);
}

// A prompt's loads are not governed, and say nothing of those that are.
void Prefetcher::NoteUse(bool useful) {
  if (!prompt_) governor_.OnUse(useful);
}

void Prefetcher::OnMisses(std::uint32_t misses, double load_seconds) {
  demand_seconds_ = misses * load_seconds;
  needed_seconds_ = layer_loads_ * load_seconds;
  foresight_.OnLoadSeconds(load_seconds);
  if (load_seconds > 0) governor_.OnLoad(load_seconds);
}

void Prefetcher::OnForecast(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) {
  TROUPE_DCHECK(layer > layer_ && ahead >= 1 && ahead <= kMostLayersAhead);
  // One who guesses by forecasts guesses nothing while there are none.
  if (predictor_->forecast_layers() > 0 && forecast.rows() == 0) return;
  AddList(layer, ahead, predictor_->Predict(layer, ahead, forecast));
  std::erase_if(kept_, [&](const ExpertCache::Pin& pin) {
    return pin.id().layer == layer && !IsWanted(pin.id());
  });
  KeepResidents(lists_.back());
}

void Prefetcher::AddList(std::uint32_t layer, std::uint32_t ahead, std::span<const Guess> guesses) {
  List list{.layer = layer, .ahead = ahead, .made = layer_began_, .guesses = {}};
  for (const Guess& guess : guesses) {
    const bool absent = cache_.IsMissing({layer, guess.expert});
    const double odds = ahead == 0 ? 1 : odds_.Of(ahead, PlaceOfRow(list.guesses.size()));
    list.guesses.push_back({.guess = guess, .was_absent = absent, .odds = odds});
  }
  lists_.push_back(std::move(list));
}

// So that the next layers' guessed residents do not make room for each other. They take no more
// than a quarter of the slots: the rest is the eviction policy's.
void Prefetcher::KeepResidents(const List& list) {
  if (IsGoverned() && governor_.Allowance() == 0) return;
  for (const Listed& listed : list.guesses) {
    if (kept_.size() >= cache_.shape().slots / 4) return;
    const ExpertId id{list.layer, listed.guess.expert};
    if (cache_.Find(id) != Residence::kResident || IsKept(id)) continue;
    kept_.push_back(cache_.PinResident(id));
  }
}

bool Prefetcher::IsKept(ExpertId id) const {
  return std::ranges::any_of(kept_, [id](const ExpertCache::Pin& pin) { return pin.id() == id; });
}

void Prefetcher::OnLoaded(ExpertId id) {
  if (IsAhead(id) && IsWanted(id)) kept_.push_back(cache_.PinResident(id));
}

void Prefetcher::Release(std::uint32_t layer) {
  std::erase_if(kept_, [layer](const ExpertCache::Pin& pin) { return pin.id().layer <= layer; });
}

bool Prefetcher::WorthLoading(const List& list, std::size_t place) const {
  // One that was there and has gone since went for something better.
  if (!list.guesses[place].was_absent) return false;
  if (list.ahead == 0) return true;  // the rows are enough to use all of it, in whichever phase
  // Of a prompt's rows only what is expected: likely further ones are of use to one row. And of no
  // more layers than the cache can hold beside the one under way.
  if (prompt_) {
    const std::uint32_t layers_held = cache_.shape().slots / (2 * grid_.experts);
    return list.ahead <= std::max(1u, layers_held) && list.guesses[place].guess.expected;
  }
  const std::size_t place_of_row = PlaceOfRow(place);
  if (options_.governed) return odds_.Of(list.ahead, place_of_row) >= governor_.LeastOdds();
  // Fate's bound: beyond what is chosen if the guess is right no more loads than a layer has time
  // for.
  const auto loads_before =
      std::ranges::count(std::span(list.guesses).first(place), true, &Listed::was_absent);
  return place_of_row < experts_per_token_ ||
         static_cast<double>(loads_before) < governor_.LoadsALayer();
}

std::optional<ExpertId> Prefetcher::Next(std::size_t under_way) {
  if (IsGoverned() && under_way >= governor_.Allowance()) return std::nullopt;
  std::optional<ExpertId> best;
  double best_odds = -1;
  for (const List& list : lists_) {
    if (LatestFor(list.layer) != &list) continue;
    for (std::size_t place = 0; place < list.guesses.size(); ++place) {
      if (!WorthLoading(list, place)) continue;
      const ExpertId id{list.layer, list.guesses[place].guess.expert};
      if (cache_.Find(id) != Residence::kAbsent) continue;
      if (prompt_ || list.ahead == 0) return id;
      if (const double odds = odds_.Of(list.ahead, PlaceOfRow(place)); odds > best_odds) {
        best = id;
        best_odds = odds;
      }
    }
  }
  return best;
}

void Prefetcher::OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) {
  loads_.Begin(id, evicted);
  ++stats_.loads;
}

bool Prefetcher::IsWanted(ExpertId id) const {
  const List* list = LatestFor(id.layer);
  return list != nullptr && std::ranges::any_of(list->guesses, [id](const Listed& listed) {
           return listed.guess.expert == id.expert;
         });
}

bool Prefetcher::IsForecastInTail(ExpertId id, double share) const {
  const List* list = LatestFor(id.layer);
  if (list == nullptr || list->ahead == 0) return false;
  std::vector<double> popularity;
  std::optional<std::size_t> place;
  for (const Listed& listed : list->guesses) {
    if (!listed.guess.expected) continue;
    if (listed.guess.expert == id.expert) place = popularity.size();
    popularity.push_back(static_cast<double>(listed.guess.weight));
  }
  return place && popularity[*place] > 0 && LeastPopular(popularity, share)[*place];
}

void Prefetcher::OnEvicted(ExpertId id, bool on_demand) {
  if (!loads_.End(id)) return;
  if (on_demand) loads_.Forgive(id);
  ++stats_.wasted;
  NoteUse(false);
}

void Prefetcher::OnCancelled(ExpertId id) {
  TROUPE_CHECK(IsAhead(id));
  loads_.End(id);
  loads_.Forgive(id);
  ++stats_.cancelled;
  NoteUse(false);  // it took a slot, and maybe part of a read
}

}  // namespace troupe
