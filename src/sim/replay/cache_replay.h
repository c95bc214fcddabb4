// One cache under one policy, asked what a trace's passes ask, in the order in which the engine
// asks (runtime/offloaded_experts.h): hits, loads, and the time that loading would have cost with a
// link and computing of given speed. Runs the very objects of expert/.
//
// Hits are those of the recorded run, expert for expert, where nothing was read ahead. In a run
// that is not recorded a layer that asks for more than has slots may leave others resident: there
// it matters which load ends first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/flow/lane_balance.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/substitution/substitution_chain.h"
#include "sim/replay/replay_link.h"
#include "sim/replay/trace_passes.h"
#include "trace/trace_header.h"

namespace troupe {

struct ReplayCosts {
  double latency_seconds = 0;
  std::vector<double> load_seconds;         // of an expert's bytes, by MoE layer; empty: none
  std::vector<std::uint64_t> expert_bytes;  // by MoE layer, in place of the trace's
  double layer_first_seconds = 0;           // of a layer without its experts: a pass's first token
  double layer_further_seconds = 0;         // each further one
  double expert_first_seconds = 0;          // of an expert
  double expert_further_seconds = 0;
  // Where a missing expert can be computed where it lies, beside the link: what one takes so. The
  // two lanes then share a layer's misses (expert/flow/lane_balance.h). Needs routes.
  std::optional<double> second_lane_seconds;
};

struct ReplaySetup {
  CacheShape cache;
  std::unique_ptr<EvictionPolicy> policy;
  std::unique_ptr<Predictor> predictor;  // null: loads begin when they are asked for
  PrefetchOptions prefetch;
  ReplayCosts costs;
  // Has a say in what is needed, in passes of as many tokens as it allows; then they need their
  // routes. None: everything is needed that was chosen.
  std::optional<SubstitutionChain> substitution;
};

struct ReplayCounts {
  std::uint64_t tokens = 0, passes = 0;
  std::uint64_t hits = 0, asks = 0;

  double HitRate() const {
    return asks == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(asks);
  }
};

// What a chain did, and how often each of its links refused or answered.
struct SubstitutionReport {
  struct Link {
    std::string link;
    std::vector<NamedCount> counts;
  };
  SubstitutionCounts counts;
  std::vector<Link> links;

  // Of all slots that the chain looked at, those that did not get the expert they chose in full.
  double ReplacedShare() const;
};

struct ReplayResult {
  ReplayCounts all, prefill, decode;
  std::vector<ReplayCounts> layers;  // by MoE layer
  CacheStats cache;
  PrefetchStats prefetch;
  std::uint64_t loads = 0;
  std::uint64_t elsewhere = 0;  // misses that the second lane computed
  std::uint64_t bytes = 0;      // zero if the trace does not say what an expert weighs
  // Times that a layer's pass asked for more than could have a slot at once.
  std::uint64_t crowded = 0;
  double stall_seconds = 0;
  double compute_seconds = 0;
  SubstitutionReport substitution;

  double Seconds() const { return stall_seconds + compute_seconds; }
};

class CacheReplay {
 public:
  CacheReplay(const TraceHeader& header, ReplaySetup setup);

  void Play(const ReplayPass& pass);
  // So far.
  ReplayResult result() const;
  const ExpertCache& cache() const { return cache_; }
  const TraceHeader& header() const { return header_; }

 private:
  struct Asked {
    ExpertId id;
    std::uint32_t tokens = 0;
  };

  std::uint64_t PlayLayer(std::size_t moe_layer, const ReplayPass& pass);  // returns its asks
  bool Substitutes(const ReplayPass& pass) const;
  // What the layer needs once the chain has answered.
  std::span<const ExpertDemand> Substitute(std::size_t moe_layer, const ReplayPass& pass);
  // `chosen`: whether the policy has been told what the router chose, and only needs are new.
  void Ask(std::size_t moe_layer, std::span<const ExpertDemand> demands, bool chosen);
  // Gives the least of what is not placed yet to the second lane, until both end together.
  void Balance(const ReplayPass& pass, std::size_t moe_layer);
  void PlanPrefetch(std::size_t moe_layer);
  void Place();
  void Prefetch();
  void CallOffStale();
  void CollectEnded();
  void WaitForOne();
  void GiveSome(std::size_t& given);
  void Load(ExpertId id, const ExpertCache::Admission& admission, bool demand);
  double LoadSeconds(std::uint32_t layer) const;
  double ExpertSeconds(std::uint32_t tokens) const {
    return costs_.expert_first_seconds + (tokens - 1) * costs_.expert_further_seconds;
  }

  const TraceHeader header_;
  ReplayCosts costs_;
  ExpertCache cache_;
  std::unique_ptr<Prefetcher> prefetcher_;
  std::optional<SubstitutionChain> chain_;
  ReplayLink link_;
  std::vector<std::uint32_t> moe_index_;  // by layer of the model

  std::vector<Residence> residence_;   // of the layer's experts, for the chain
  std::vector<std::uint32_t> tokens_;  // [expert]: that its answers still need
  std::vector<ExpertDemand> needed_;   // what the layer needs then

  double now_ = 0;
  std::vector<Asked> waiting_;   // asked for, not there yet
  std::vector<Asked> unplaced_;  // of them without a slot
  std::vector<ExpertId> ahead_;  // prefetches that have not ended
  std::vector<ExpertId> ended_;
  struct Ready {
    ExpertCache::Pin pin;
    std::uint32_t tokens;
  };
  std::vector<Ready> ready_, given_;
  std::size_t residents_left_ = 0;  // the first of ready_
  std::size_t elsewhere_ = 0;       // of the layer's, on the second lane
  double second_lane_ends_ = 0;
  static constexpr std::size_t kLoadsRemembered = 64;
  WindowMean load_mean_{kLoadsRemembered};
  std::vector<float> weights_;  // [expert]: the largest that a token gives it
  ReplayResult result_;
};

}  // namespace troupe
