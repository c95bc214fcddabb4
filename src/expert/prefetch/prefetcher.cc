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
      ahead_(grid_.Count()),
      displaced_(grid_.Count(), kNobody),
      displaced_by_(grid_.Count(), kNobody) {
  TROUPE_CHECK(predictor_ != nullptr);
}

std::uint32_t Prefetcher::forecast_layers(std::size_t tokens) const {
  const std::uint32_t most = std::min(predictor_->forecast_layers(), kMostLayersAhead);
  if (!options_.governed || tokens > 1) return most;
  return std::min(most, governor_.LayersAhead());
}

void Prefetcher::PassBegins(std::uint32_t layer, std::size_t tokens) {
  // What lies between two passes is the caller's time, so a token's is counted from its first layer
  // with experts to its last. One that was cut short by an error says nothing.
  if (in_pass_ && tokens_ == 1 && layer_ + 1 == grid_.layers) {
    governor_.TokenTook(static_cast<double>(layer_began_ - pass_began_) * 1e-9, loads_needed_);
  }
  in_pass_ = false;
  lists_.clear();
  tokens_ = static_cast<std::uint32_t>(tokens);
  if (tokens * experts_per_token_ < 4 * grid_.experts) return;
  std::vector<Guess> all(grid_.experts);
  for (std::uint32_t e = 0; e < grid_.experts; ++e) all[e] = {.expert = e, .expected = true};
  AddList(layer, 0, all);
}

void Prefetcher::LayerAsks(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now) {
  if (std::exchange(in_pass_, true)) {
    if (tokens_ == 1)
      governor_.LayerRan(static_cast<double>(now - layer_began_) * 1e-9, demand_seconds_,
                         needed_seconds_);
  } else {
    pass_began_ = now;
    loads_needed_ = 0;
  }
  Judge(layer, demands);
  std::erase_if(lists_, [layer](const List& list) { return list.layer <= layer; });
  layer_ = layer;
  layer_began_ = now;
  demand_seconds_ = needed_seconds_ = 0;
  layer_loads_ = 0;
  predictor_->Chose(layer, demands);
}

// What the layer asks for against what was guessed of it.
void Prefetcher::Judge(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  const auto asked = [demands](std::uint32_t expert) {
    return std::ranges::find(demands, expert, &ExpertDemand::expert) != demands.end();
  };
  for (const List& list : lists_) {
    if (list.layer != layer || tokens_ != 1) continue;
    for (std::size_t place = 0; place < list.guesses.size(); ++place) {
      const Listed& listed = list.guesses[place];
      if (listed.was_absent) odds_.Saw(list.ahead, place, asked(listed.guess.expert));
    }
  }
  const List* latest = LatestFor(layer);
  if (latest == nullptr || latest->ahead == 0) return;
  stats_.asked += demands.size();
  for (const Listed& listed : latest->guesses) {
    if (!asked(listed.guess.expert)) continue;
    ++stats_.guessed;
    stats_.expected += listed.guess.expected ? 1 : 0;
  }
}

const Prefetcher::List* Prefetcher::LatestFor(std::uint32_t layer) const {
  const auto latest = std::ranges::find(lists_.rbegin(), lists_.rend(), layer, &List::layer);
  return latest == lists_.rend() ? nullptr : &*latest;
}

void Prefetcher::Found(ExpertId id, Residence residence) {
  const std::size_t index = grid_.Index(id);
  NoteFound(index, residence);
  if (!ahead_[index] || residence == Residence::kAbsent) return;
  ahead_[index] = false;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
  NoteUsed(true);
}

void Prefetcher::NoteFound(std::size_t index, Residence residence) {
  // While the governor compares, tokens without prefetching still miss what guesses before pushed
  // out.
  const bool displaced = displaced_by_[index] != kNobody;
  const bool loaded = ahead_[index] || residence != Residence::kResident;
  layer_loads_ += loaded ? 1 : 0;
  // The last layer's loads end after the time that is compared.
  const bool counts = layer_ + 1 < grid_.layers && (!displaced || governor_.resting());
  loads_needed_ += loaded && counts ? 1 : 0;
  displaced_by_[index] = kNobody;
  // A guess that came true took the slot that its load would have taken anyway.
  if (residence != Residence::kAbsent) Forgive(index);
}

void Prefetcher::Forgive(std::size_t index) {
  const std::uint32_t victim = std::exchange(displaced_[index], kNobody);
  if (victim != kNobody && displaced_by_[victim] == index) displaced_by_[victim] = kNobody;
}

// A prompt's tokens are not governed, and say nothing of those that are.
void Prefetcher::NoteUsed(bool useful) {
  if (tokens_ == 1) governor_.Used(useful);
}

void Prefetcher::LayerMissed(std::uint32_t misses, double load_seconds) {
  demand_seconds_ = misses * load_seconds;
  needed_seconds_ = layer_loads_ * load_seconds;
  if (load_seconds > 0) governor_.LoadTook(load_seconds);
}

void Prefetcher::Foretell(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast) {
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
  List list{.layer = layer, .ahead = ahead, .guesses = {}};
  for (const Guess& guess : guesses) {
    const bool absent = cache_.Find({layer, guess.expert}) == Residence::kAbsent;
    list.guesses.push_back({.guess = guess, .was_absent = absent});
  }
  lists_.push_back(std::move(list));
}

// So that the next layers' guessed residents do not make room for each other. They take no more
// than a quarter of the slots: the rest is the eviction policy's.
void Prefetcher::KeepResidents(const List& list) {
  if (options_.governed && tokens_ == 1 && governor_.Allowance() == 0) return;
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

void Prefetcher::Arrived(ExpertId id) {
  if (IsAhead(id) && IsWanted(id)) kept_.push_back(cache_.PinResident(id));
}

void Prefetcher::Release(std::uint32_t layer) {
  std::erase_if(kept_, [layer](const ExpertCache::Pin& pin) { return pin.id().layer <= layer; });
}

bool Prefetcher::WorthLoading(const List& list, std::size_t place) const {
  // One that was there and has gone since went for something better.
  if (!list.guesses[place].was_absent) return false;
  // Of a prompt's tokens only what is expected: likely further ones are of use to one token. And of
  // no more layers than the cache can hold beside the one under way.
  if (tokens_ > 1) {
    const std::uint32_t layers_held = cache_.shape().slots / (2 * grid_.experts);
    return list.ahead <= std::max(1u, layers_held) && list.guesses[place].guess.expected;
  }
  if (options_.governed) return odds_.Of(list.ahead, place) >= governor_.LeastOdds();
  // Fate's bound: beyond what is chosen if the guess is right no more loads than a layer has time
  // for.
  const auto loads_before =
      std::ranges::count(std::span(list.guesses).first(place), true, &Listed::was_absent);
  return place < experts_per_token_ || static_cast<double>(loads_before) < governor_.LoadsALayer();
}

std::optional<ExpertId> Prefetcher::Next(std::size_t under_way) {
  if (options_.governed && tokens_ == 1 && under_way >= governor_.Allowance()) return std::nullopt;
  std::optional<ExpertId> best;
  double best_odds = -1;
  for (const List& list : lists_) {
    if (LatestFor(list.layer) != &list) continue;
    for (std::size_t place = 0; place < list.guesses.size(); ++place) {
      if (!WorthLoading(list, place)) continue;
      const ExpertId id{list.layer, list.guesses[place].guess.expert};
      if (cache_.Find(id) != Residence::kAbsent) continue;
      if (tokens_ > 1) return id;
      if (const double odds = odds_.Of(list.ahead, place); odds > best_odds) {
        best = id;
        best_odds = odds;
      }
    }
  }
  return best;
}

void Prefetcher::Begun(ExpertId id, std::optional<ExpertId> evicted) {
  const auto index = static_cast<std::uint32_t>(grid_.Index(id));
  ahead_[index] = true;
  ++stats_.loads;
  Forgive(index);
  if (!evicted) return;
  displaced_[index] = static_cast<std::uint32_t>(grid_.Index(*evicted));
  displaced_by_[displaced_[index]] = index;
}

std::uint64_t Prefetcher::waiting() const {
  return static_cast<std::uint64_t>(std::ranges::count(ahead_, true));
}

bool Prefetcher::IsWanted(ExpertId id) const {
  const List* list = LatestFor(id.layer);
  return list != nullptr && std::ranges::any_of(list->guesses, [id](const Listed& listed) {
           return listed.guess.expert == id.expert;
         });
}

bool Prefetcher::IsForeseenInTail(ExpertId id, double share) const {
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

void Prefetcher::Evicted(ExpertId id, bool on_demand) {
  const std::size_t index = grid_.Index(id);
  if (!ahead_[index]) return;
  if (on_demand) Forgive(index);
  ahead_[index] = false;
  ++stats_.wasted;
  NoteUsed(false);
}

void Prefetcher::Cancelled(ExpertId id) {
  TROUPE_CHECK(IsAhead(id));
  const std::size_t index = grid_.Index(id);
  ahead_[index] = false;
  Forgive(index);  // the slot is free, and what takes it next would have pushed out the same
  ++stats_.cancelled;
  NoteUsed(false);  // it took a slot, and maybe part of a read
}

}  // namespace troupe
