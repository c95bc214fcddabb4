// Reading ahead, as who answers misses sees it: told of everything that happens, and asked what to
// load next. The null object here never loads anything, and costs nothing; prefetcher.h does.
#pragma once

#include <troupe/foresight.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.h"
#include "expert/cache/expert_cache.h"
#include "expert/forecast/judged_chances.h"
#include "expert/forecast/predictor.h"
#include "expert/layer_choices.h"
#include "expert/pass_facts.h"
#include "expert/prefetch/miss_foresight.h"

namespace troupe {

// loads = useful + late + cancelled + wasted + those that are still waiting to be asked for.
struct PrefetchStats {
  std::uint64_t loads = 0;
  std::uint64_t useful = 0;     // there when asked for
  std::uint64_t late = 0;       // asked for on their way
  std::uint64_t cancelled = 0;  // called off before all of it was read
  std::uint64_t wasted = 0;     // evicted or failed unasked
  // Experts asked for by layers, and those of them that were in the last guess before. Most have
  // none of a first layer, nor while a governor rests.
  std::uint64_t asked = 0;
  std::uint64_t guessed = 0;
  std::uint64_t expected = 0;  // of the guessed: not only as likely further ones
  // Of the loads: begun as a draft by the experts in memory had named the expert, and of these,
  // asked for by the very next pass.
  std::uint64_t drafts_begun = 0;
  std::uint64_t drafts_used = 0;
  Foresight foresight;
  // Of a whole engine: to divide it among requests, as foresight is, would cost each pass more than
  // it tells.
  JudgedChances chances;
  // Of `scores`: tokens that its tables were learned from so far, and those of them that tables
  // from an earlier run had been (score_tables.h).
  std::uint64_t tokens_learned = 0;
  std::uint64_t tokens_known = 0;

  // All but foresight and what follows it, which are counted for both together.
  void AddCounts(const PrefetchStats& other) {
    loads += other.loads;
    useful += other.useful;
    late += other.late;
    cancelled += other.cancelled;
    wasted += other.wasted;
    asked += other.asked;
    guessed += other.guessed;
    expected += other.expected;
    drafts_begun += other.drafts_begun;
    drafts_used += other.drafts_used;
  }
  bool operator==(const PrefetchStats&) const = default;
};

// The link that loads ahead share with demand, as it is now.
struct LinkNow {
  Nanos now = 0;
  double queued_seconds = 0;  // of loads ahead that are under way
  // A demand waits at most so long for one of them that is being read.
  double held_seconds = 0;
};

class Prefetching {
 public:
  virtual ~Prefetching() = default;

  // Of how many layers ahead forecasts are of use to the pass under way.
  virtual std::uint32_t forecast_layers() const { return 0; }
  // See Predictor.
  virtual bool forecasts_with_answers() const { return false; }

  // A pass begins. Of its first layer with experts nothing can be predicted, but enough rows use
  // nearly all of it.
  virtual void OnPassBegins(const PassFacts& /*pass*/) {}
  // What a layer's router said of the pass's rows, before the layer asks; without any where only
  // the choices are known.
  virtual void OnScores(std::uint32_t /*layer*/, std::span<const float> /*scores*/) {}
  // Of each group of the last pass, how many of its guesses were right: after the pass, if it had
  // any.
  virtual void OnGuessesChecked(std::span<const std::uint32_t> /*right*/) {}
  // A layer asks. Before the cache is asked; afterwards the layer's guesses are history.
  virtual void OnLayerAsks(const LayerChoices& /*choices*/, Nanos /*now*/) {}
  // What a row of a draft chose in a layer, now that the text is known to have it. After the pass.
  virtual void OnGuessRight(const LayerChoices& /*choices*/) {}
  // What the cache said of one of the layer's experts.
  virtual void OnFound(ExpertId /*id*/, Residence /*residence*/) {}
  // The layer's misses and how long one expert takes the link: what the idle time is told from.
  virtual void OnMisses(std::uint32_t /*misses*/, double /*load_seconds*/) {}

  // Time passes that no pass of the text takes: what a layer takes cannot be told from it.
  virtual void OnPause() {}

  virtual void OnGateScores(std::uint32_t /*layer*/, const GateScores& /*said*/) {}
  // Guesses for a layer that lies `ahead` layers after the one that has just asked, in place of
  // earlier guesses for it. Residents among them are kept in their slots until it asks.
  virtual void OnForecast(std::uint32_t /*layer*/, std::uint32_t /*ahead*/,
                          const GateScores& /*forecast*/) {}

  // Before each Next.
  virtual void OnLink(const LinkNow& /*link*/) {}
  // An absent expert whose load should begin now, while `under_way` others are; the same one until
  // OnLoadBegins.
  virtual std::optional<ExpertId> Next(std::size_t /*under_way*/) { return std::nullopt; }
  // Nearly everything that is expected of this pass is used: its load may go before anything.
  virtual bool is_sure() const { return false; }
  // `evicted` made room for it.
  virtual void OnLoadBegins(ExpertId /*id*/, std::optional<ExpertId> /*evicted*/) {}
  // The next one found no slot for its load.
  virtual void OnNoSlot(ExpertId /*id*/) {}
  // It has come before it was asked for, and is kept until its layer asks.
  virtual void OnLoaded(ExpertId /*id*/) {}
  // What was kept for layers up to this one is the eviction policy's again.
  virtual void Release(std::uint32_t /*layer*/) {}
  // Everything is: the layer under way needs slots more.
  virtual void ReleaseAll() {}

  // Whether a load made ahead may still be of use: its layer is to come and guessed to ask for it.
  virtual bool IsWanted(ExpertId /*id*/) const { return false; }
  virtual bool IsAhead(ExpertId /*id*/) const { return false; }
  // Whether the latest guess has it among the least popular that a share of the layer's assignments
  // goes to. Never where nothing is known.
  virtual bool IsForecastInTail(ExpertId /*id*/, double /*share*/) const { return false; }

  // Of an expert that the layer under way has just asked for and has to wait for: what had been
  // known of it. `under_way`: its load has begun.
  virtual MissForesight ForesightOf(ExpertId /*id*/, bool /*under_way*/,
                                    double /*load_seconds*/) const {
    return {};
  }

  // What has become of a prefetch; if a load on demand made it go, what it had pushed out would
  // have had to go by now.
  virtual void OnEvicted(ExpertId /*id*/, bool /*on_demand*/ = false) {}
  virtual void OnFailed(ExpertId /*id*/) {}
  virtual void OnCancelled(ExpertId /*id*/) {}

  virtual PrefetchStats stats() const { return {}; }
  // Loads that have not ended in one of the four ways yet.
  virtual std::uint64_t waiting() const { return 0; }
  // Likely experts that guesses left out, as others may answer for them.
  virtual std::uint64_t left_out() const { return 0; }
};

class NoPrefetch final : public Prefetching {};

}  // namespace troupe
