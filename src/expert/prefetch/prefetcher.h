// What to load before it is asked for: a predictor's guesses for the layers to come, less what is
// there, the likeliest first, as many as the governor allows. Also the book of what became of each
// prefetch. Pure: it sees the cache, and time and the link's speed come in as arguments; the
// loading is done by whoever asks it what is next.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "expert/cache/expert_cache.h"
#include "expert/forecast/predictor.h"
#include "expert/prefetch/governor.h"
#include "expert/prefetch/odds.h"

namespace troupe {

struct PrefetchOptions {
  bool governed = true;  // without the governor every guess that a layer has time for is loaded
  GovernorOptions governor;
};

// loads = useful + late + cancelled + wasted + those that are still waiting to be asked for.
struct PrefetchStats {
  std::uint64_t loads = 0;
  std::uint64_t useful = 0;     // there when asked for
  std::uint64_t late = 0;       // asked for on their way
  std::uint64_t cancelled = 0;  // called off before all of it was read
  std::uint64_t wasted = 0;     // evicted or failed unasked
  // Experts asked for by layers that a guess was made for, and those of them that were in the last
  // guess before.
  std::uint64_t asked = 0;
  std::uint64_t guessed = 0;
  std::uint64_t expected = 0;  // of the guessed: not only as likely further ones

  bool operator==(const PrefetchStats&) const = default;
};

class Prefetcher {
 public:
  // The cache must outlive it.
  Prefetcher(ExpertCache& cache, std::uint32_t experts_per_token,
             std::unique_ptr<Predictor> predictor, const PrefetchOptions& options = {});

  // Of how many layers ahead forecasts are of use to a pass of so many tokens.
  std::uint32_t forecast_layers(std::size_t tokens) const;

  // A pass of so many tokens sets out. Of the first layer with experts nothing can be foretold, but
  // enough tokens use nearly all of it.
  void PassBegins(std::uint32_t layer, std::size_t tokens);
  // A layer asks. Before the cache is asked; afterwards the layer's guesses are history.
  void LayerAsks(std::uint32_t layer, std::span<const ExpertDemand> demands, Nanos now);
  // What the cache said of one of the layer's experts.
  void Found(ExpertId id, Residence residence);
  // The layer's misses and how long one expert takes the link: what the idle time is told from.
  void LayerMissed(std::uint32_t misses, double load_seconds);

  void GateSaid(std::uint32_t layer, const GateScores& said) { predictor_->GateSaid(layer, said); }
  // Guesses for a layer that lies `ahead` layers after the one that has just asked, in place of
  // earlier guesses for it. Residents among them are kept in their slots until it asks.
  void Foretell(std::uint32_t layer, std::uint32_t ahead, const GateScores& forecast);
  // An absent expert whose load should begin now, while `under_way` others are; the same one until
  // Begun.
  std::optional<ExpertId> Next(std::size_t under_way);
  // With this many tokens nearly everything expected is used: its load may go before anything.
  bool is_sure() const { return tokens_ >= 8; }
  // `evicted` made room for it.
  void Begun(ExpertId id, std::optional<ExpertId> evicted);
  // It has come before it was asked for, and is kept until its layer asks.
  void Arrived(ExpertId id);
  // What was kept for layers up to this one is the eviction policy's again.
  void Release(std::uint32_t layer);
  // Everything is: the layer under way needs slots more.
  void ReleaseAll() { kept_.clear(); }

  // Whether a load made ahead may still be of use: its layer is to come and guessed to ask for it.
  bool IsWanted(ExpertId id) const;

  // Whether the latest guess has it among the least popular that a share of the layer's assignments
  // goes to. Never where nothing is known.
  bool IsForeseenInTail(ExpertId id, double share) const;

  // What has become of a prefetch; if a load on demand made it go, what it had pushed out would
  // have had to go by now.
  void Evicted(ExpertId id, bool on_demand = false);
  void Failed(ExpertId id) { Evicted(id); }
  void Cancelled(ExpertId id);
  bool IsAhead(ExpertId id) const { return ahead_[grid_.Index(id)]; }

  const PrefetchStats& stats() const { return stats_; }
  // Loads that have not ended in one of the four ways yet.
  std::uint64_t waiting() const;
  // Of the token under way, by what the governor compares tokens: experts that had to be loaded,
  // whether ahead or on demand. One that is missing because a guess that nobody asked for took its
  // slot is not among them: that is what reading ahead costs.
  std::uint32_t loads_needed() const { return loads_needed_; }
  const PrefetchGovernor& governor() const { return governor_; }
  const PrefetchOdds& odds() const { return odds_; }
  const Predictor& predictor() const { return *predictor_; }

 private:
  struct Listed {
    Guess guess;
    bool was_absent = false;  // when it was guessed
  };
  // What was guessed of a layer from one distance.
  struct List {
    std::uint32_t layer = 0;
    std::uint32_t ahead = 0;  // 0: of the first layer, before anything was known
    std::vector<Listed> guesses;
  };

  void AddList(std::uint32_t layer, std::uint32_t ahead, std::span<const Guess> guesses);
  const List* LatestFor(std::uint32_t layer) const;
  void Judge(std::uint32_t layer, std::span<const ExpertDemand> demands);
  bool WorthLoading(const List& list, std::size_t place) const;
  bool IsKept(ExpertId id) const;
  void KeepResidents(const List& list);
  void NoteFound(std::size_t index, Residence residence);
  void NoteUsed(bool useful);
  // What the guess pushed out is no longer missing because of it.
  void Forgive(std::size_t index);

  ExpertCache& cache_;
  ExpertGrid grid_;
  std::uint32_t experts_per_token_;
  std::unique_ptr<Predictor> predictor_;
  PrefetchOptions options_;
  PrefetchGovernor governor_;
  PrefetchOdds odds_;

  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  std::vector<bool> ahead_;  // loaded or loading ahead of the first question
  // By index in the grid: whose slot a guess took, and the other way round, until it is asked for.
  std::vector<std::uint32_t> displaced_, displaced_by_;
  std::vector<List> lists_;  // for the layers to come, in the order in which they were made
  std::vector<ExpertCache::Pin> kept_;
  PrefetchStats stats_;

  // The pass under way.
  bool in_pass_ = false;
  std::uint32_t layer_ = 0;
  std::uint32_t tokens_ = 0;
  Nanos pass_began_ = 0, layer_began_ = 0;
  double demand_seconds_ = 0, needed_seconds_ = 0;  // of the link, by the layer
  std::uint32_t layer_loads_ = 0;                   // on demand or ahead
  std::uint32_t loads_needed_ = 0;
};

}  // namespace troupe
