// Reading ahead by one who knows what the trace asks for next: a bound on what any forecast that
// reaches so far could be worth to the same cache. Loads begin in the order of need, of the next
// layers up to a number, across the ends of passes. Each takes the slot that the cache's policy
// gives up, but never one of an expert that is needed sooner: if there is no other it waits, and
// all that is needed later with it.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "expert/cache/expert_cache.h"
#include "expert/prefetch/prefetching.h"

namespace troupe {

class ForeseenLoads final : public Prefetching {
 public:
  // What one layer of a pass asks for.
  struct Step {
    std::uint32_t layer = 0;
    std::span<const ExpertDemand> demands;
  };
  // Steps by their number, counted from the first layer of the first pass; none of one that is not
  // at hand. The step under way and those after it must be there as far as they are to be foreseen.
  using Future = std::function<std::optional<Step>(std::uint64_t)>;

  static constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();
  // That wait for the link at once: enough that it is never without one while a layer computes.
  static constexpr std::size_t kMostUnderWay = 8;

  // The cache must outlive it.
  ForeseenLoads(ExpertCache& cache, std::uint64_t layers_ahead, Future future);

  // Stops the program if the run is not the recorded one: its answers would mean nothing.
  void OnLayerAsks(const LayerChoices& choices, Nanos now) override;
  void OnFound(ExpertId id, Residence residence) override;
  std::optional<ExpertId> Next(std::size_t under_way) override;
  void OnLoadBegins(ExpertId id, std::optional<ExpertId> evicted) override;
  void OnLoaded(ExpertId) override { KeepArrived(); }
  void Release(std::uint32_t layer) override;
  void ReleaseAll() override { LookAgain(); }
  bool IsWanted(ExpertId id) const override { return IsAhead(id); }
  bool IsAhead(ExpertId id) const override { return ahead_[grid_.Index(id)]; }
  void OnEvicted(ExpertId id, bool on_demand) override;
  PrefetchStats stats() const override { return stats_; }
  std::uint64_t waiting() const override;

 private:
  // One more of the steps looked at needs it.
  void Need(ExpertId id);
  void KeepArrived();
  // From the layer that asks next on.
  void LookAgain();

  ExpertCache& cache_;
  ExpertGrid grid_;
  std::uint64_t layers_ahead_;
  Future future_;

  std::uint64_t next_ = 0;    // the step that asks next
  std::uint64_t step_ = 0;    // that is being looked at, and
  std::size_t at_ = 0;        // how many of its demands were
  std::size_t released_ = 0;  // of the step under way, demands to be released
  // By grid index: how many of the steps looked at need it.
  std::vector<std::uint32_t> needs_;
  std::vector<bool> ahead_;
  std::map<ExpertId, ExpertCache::Pin> kept_;  // residents that these steps need
  std::vector<ExpertId> arriving_;             // needed, and not resident yet
  PrefetchStats stats_;
};

// Layers ahead of "oracle:4" and "oracle:unlimited"; none of another name, an error of another
// number.
Result<std::optional<std::uint64_t>> LayersForeseen(std::string_view predictor);

}  // namespace troupe
