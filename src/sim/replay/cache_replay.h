// One cache under one policy, asked what a trace's passes ask: hits, loads, and the time that
// loading would have cost with a link and computing of given speed. Drives the same MissFlow as the
// engine (expert/flow/miss_flow.h), in order, with a link and a clock of its own.
//
// Hits are those of the recorded run, expert for expert, where nothing was read ahead. In a run
// that is not recorded a layer that asks for more than has slots may leave others resident: there
// it matters which load ends first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/flow/miss_flow.h"
#include "expert/substitution/substitution_chain.h"
#include "sim/replay/foreseen_loads.h"
#include "sim/replay/replay_loads.h"
#include "sim/replay/replay_result.h"
#include "sim/replay/trace_passes.h"
#include "trace/trace_header.h"

namespace troupe {

// What one who knows the trace is told, and how far (foreseen_loads.h).
struct ForeseenFuture {
  std::uint64_t layers_ahead = 1;
  ForeseenLoads::Future future;
};

struct ReplaySetup {
  CacheShape cache;
  std::unique_ptr<EvictionPolicy> policy;
  std::unique_ptr<Predictor> predictor;  // null: loads begin when they are asked for
  PrefetchOptions prefetch;
  bool by_worth = false;  // reads ahead by what routers say; the passes need their routes
  std::optional<ScoreTables> score_tables;  // what that begins with
  std::optional<ForeseenFuture> foreseen;   // in the predictor's place
  ReplayCosts costs;
  // Has a say in what is needed, in passes of as many tokens as it allows; then they need their
  // routes. None: everything is needed that was chosen.
  std::optional<SubstitutionChain> substitution;
};

// Adds what a pass asked for and found to those of all passes, and of its phase.
void CountPass(const ReplayPass& pass, std::uint64_t hits, std::uint64_t asks,
               ReplayResult& result);

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
  // By the largest weight that a token gives each.
  void Weigh(std::span<const ExpertChoice> chosen);
  void GiveAll(std::uint32_t layer);
  // The second lane computes what was decided to be computed there; until when.
  double BusyElsewhere();
  void Collect();
  // Of what computing takes, what was done while the expert was waited for, as its first part had
  // come.
  double DoneWhileWaiting(std::uint32_t layer, double waited, double seconds);
  void Compute(double seconds);

  const TraceHeader header_;
  ReplayCosts costs_;
  ReplayLoads loads_;
  MissFlow flow_;

  std::optional<DemandId> demand_;     // of the layer under way
  std::vector<ExpertChoice> chosen_;   // as the chain answers
  std::vector<std::uint32_t> tokens_;  // [expert]: of what the layer needs
  std::vector<ExpertDemand> needed_;
  ReplayResult result_;
};

}  // namespace troupe
