#include "expert/prefetcher.h"

#include <algorithm>
#include <utility>

namespace troupe {

Prefetcher::Prefetcher(ExpertCache& cache, std::uint32_t experts_per_token,
                       std::unique_ptr<Predictor> predictor, const PrefetchOptions& options)
    : cache_(cache),
      grid_(cache.shape().grid),
      experts_per_token_(std::max(1u, experts_per_token)),
      predictor_(std::move(predictor)),
      options_(options),
      governor_(options.governor),
      ahead_(grid_.Count()) {
  TROUPE_CHECK(predictor_ != nullptr);
}

void Prefetcher::LayerAsks(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now) {
  const auto seconds_since = [now](Nanos then) { return static_cast<double>(now - then) * 1e-9; };
  if (in_pass_ && layer > layer_) {
    governor_.LayerRan(seconds_since(layer_began_), demand_seconds_);
  } else {
    // A new pass. What lies between two is the caller's time, so a token's is counted from its
    // first layer with experts to its last.
    // One that was cut short by an error says nothing.
    if (in_pass_ && tokens_ == 1 && layer_ + 1 == grid_.layers) {
      governor_.TokenTook(static_cast<double>(layer_began_ - pass_began_) * 1e-9);
    }
    pass_began_ = now;
    std::uint32_t assignments = 0;
    for (const ExpertDemand& demand : demands) assignments += demand.tokens;
    tokens_ = assignments / experts_per_token_;
    in_pass_ = true;
  }
  if (guessed_layer_ == layer) {
    stats_.asked += demands.size();
    for (const ExpertDemand& demand : demands) {
      const auto guess = std::ranges::find(guesses_, demand.expert, &Guess::expert);
      if (guess == guesses_.end()) continue;
      ++stats_.guessed;
      stats_.expected += guess->expected ? 1 : 0;
    }
  }
  layer_ = layer;
  layer_began_ = now;
  demand_seconds_ = 0;
  guesses_.clear();
  guessed_layer_.reset();
  next_ = 0;
  predictor_->Chose(layer, demands);
}

void Prefetcher::Found(ExpertId id, Residence residence) {
  const std::size_t index = grid_.Index(id);
  if (!ahead_[index] || residence == Residence::kAbsent) return;
  ahead_[index] = false;
  ++(residence == Residence::kResident ? stats_.useful : stats_.late);
  governor_.Used(true);
}

void Prefetcher::LayerMissed(std::uint32_t misses, double load_seconds) {
  demand_seconds_ = misses * load_seconds;
  if (load_seconds > 0) governor_.LoadTook(load_seconds);
}

void Prefetcher::Foretell(std::uint32_t layer, const GateForecast& forecast) {
  guesses_ = predictor_->Predict(layer, forecast);
  guessed_layer_ = layer;
  next_ = 0;
  // Many tokens use nearly everything that is guessed, and the link is never idle for long.
  allowed_ = !options_.governed || tokens_ > 1 ? ~0u : governor_.Allowance();
  kept_.clear();
  if (allowed_ == 0) return;
  for (const Guess& guess : guesses_) {
    const ExpertId id{layer, guess.expert};
    if (cache_.Find(id) == Residence::kResident) kept_.push_back(cache_.PinResident(id));
  }
}

std::optional<ExpertId> Prefetcher::Next() {
  if (allowed_ == 0) return std::nullopt;
  for (; next_ < guesses_.size(); ++next_) {
    const ExpertId id{*guessed_layer_, guesses_[next_].expert};
    // Of a prompt's tokens only the expected ones: likely further ones are of use to one token.
    if (tokens_ > 1 && !guesses_[next_].expected) continue;
    if (cache_.Find(id) == Residence::kAbsent) return id;
  }
  return std::nullopt;
}

void Prefetcher::Begun(ExpertId id) {
  ahead_[grid_.Index(id)] = true;
  ++stats_.loads;
  --allowed_;
  ++next_;
}

void Prefetcher::Skip() { next_ = guesses_.size(); }

void Prefetcher::Evicted(ExpertId id) {
  const std::size_t index = grid_.Index(id);
  if (!ahead_[index]) return;
  ahead_[index] = false;
  ++stats_.wasted;
  governor_.Used(false);
}

void Prefetcher::Cancelled(ExpertId id) {
  TROUPE_CHECK(ahead_[grid_.Index(id)]);
  ahead_[grid_.Index(id)] = false;
  ++stats_.cancelled;
  governor_.Used(false);  // it took a slot, and maybe part of a read
}

}  // namespace troupe
