// The offline optimum of a trace's passes, counted as the replay of a cache is: what no policy can
// hit more often (expert/cache/pass_optimum.h). It has no time, since no order of loads is its own.
#pragma once

#include "expert/cache/pass_optimum.h"
#include "sim/replay/cache_replay.h"

namespace troupe {

class OptimumReplay {
 public:
  // `future`: of the passes that are to be played.
  OptimumReplay(const TraceHeader& header, CacheShape shape, const ReplayCosts& costs,
                Optimum::Future future);

  void Play(const ReplayPass& pass);
  // So far.
  ReplayResult result() const;

 private:
  const TraceHeader header_;
  std::vector<std::uint64_t> expert_bytes_;  // by MoE layer, or empty
  PassOptimum optimum_;
  Optimum::Future future_;
  std::vector<Optimum::Use> asks_;  // of the layer under way
  ReplayResult result_;
};

}  // namespace troupe
