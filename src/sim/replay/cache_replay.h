// One cache under one policy, asked what a trace's passes ask: hits, loads, and the time that
// loading would have cost with a link and computing of given speed. Drives the same MissFlow as the
// engine (expert/flow/miss_flow.h), in order, with a link and a clock of its own.
//
// Hits are those of the recorded run, expert for expert, where nothing was read ahead. In a run
// that is not recorded a layer that asks for more than has slots may leave others resident: there
// it matters which load ends first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/flow/lane_balance.h"
#include "expert/flow/miss_flow.h"
#include "expert/flow/plan_layer.h"
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
  // two lanes then share a layer's misses (expert/flow/plan_layer.h). Needs routes.
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
  ReplayCounts mixed;                // passes of both
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

// The replay's link behind the flow's port, with the clock of both.
class ReplayLoads final : public LoadPort {
 public:
  ReplayLoads(const TraceHeader& header, const ReplayCosts& costs);

  void Begin(ExpertId id, std::uint32_t slot, ExpertCopy copy, Urgency urgency) override;
  void Promote(ExpertId id) override { link_.Promote(id); }
  CallOff Cancel(ExpertId id) override {
    return link_.Cancel(id) ? CallOff::kGone : CallOff::kTooLate;
  }
  double SecondsFor(std::uint32_t layer) const override;
  // Until the load that is under way has ended.
  double SecondsUnderWay() const;
  bool idle() const override { return link_.NextEnd() == ReplayLink::kNothing; }

  void Pass(double seconds) { now_ += seconds; }
  void PassToNextEnd() { now_ = std::max(now_, link_.NextEnd()); }
  double now() const { return now_; }
  // What has ended by now and was not taken yet.
  std::span<const LoadEnd> TakeEnded();

  std::uint64_t loads() const { return loads_; }
  std::uint64_t bytes() const { return bytes_; }
  // Of the last loads, as it would be known where nobody tells.
  std::optional<double> MeanSeconds() const { return mean_.Mean(); }

 private:
  static constexpr std::size_t kLoadsRemembered = 64;

  ReplayLink link_;
  std::vector<double> seconds_;        // by layer of the model
  std::vector<std::uint64_t> weight_;  // in bytes, by layer too; empty: not known
  double now_ = 0;
  std::vector<ExpertId> ids_;
  std::vector<LoadEnd> ended_;
  std::uint64_t loads_ = 0, bytes_ = 0;
  WindowMean mean_{kLoadsRemembered};
};

class CacheReplay {
 public:
  CacheReplay(const TraceHeader& header, ReplaySetup setup);

  void Play(const ReplayPass& pass);
  // So far.
  ReplayResult result() const;
  const ExpertCache& cache() const { return flow_.cache(); }
  const TraceHeader& header() const { return header_; }

 private:
  std::uint64_t PlayLayer(std::size_t moe_layer, const ReplayPass& pass);  // returns its asks
  // What the layer needs: once the chain has answered, if it has a say.
  std::span<const ExpertDemand> Route(std::size_t moe_layer, const ReplayPass& pass);
  // Gives the lightest of what is not placed yet to the second lane, where the layer ends sooner
  // so.
  void PlanMisses(const ReplayPass& pass, std::size_t moe_layer);
  void GiveAll();
  void Collect();
  void Compute(double seconds);
  double ExpertSeconds(std::uint32_t tokens) const {
    return costs_.expert_first_seconds + (tokens - 1) * costs_.expert_further_seconds;
  }

  const TraceHeader header_;
  ReplayCosts costs_;
  ReplayLoads loads_;
  MissFlow flow_;

  std::optional<DemandId> demand_;     // of the layer under way
  std::vector<ExpertChoice> chosen_;   // as the chain answers
  std::vector<std::uint32_t> tokens_;  // [expert]: of what the layer needs
  std::vector<ExpertDemand> needed_;
  LayerPlanner planner_;
  std::vector<LaneMiss> misses_;  // of the layer under way, without a slot
  std::vector<ExpertId> loaded_;  // of them
  std::vector<float> weights_;    // [expert]: the largest that a token gives it
  double second_lane_ends_ = -1;  // of the layer under way; before now: not used
  ReplayResult result_;
};

}  // namespace troupe
