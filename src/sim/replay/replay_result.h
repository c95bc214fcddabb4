// What a replay counts: a value, of a cache under a policy.
#pragma once

#include <troupe/pass_time.h>

#include <cstdint>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/prefetch/prefetching.h"
#include "expert/substitution/substitution_chain.h"

namespace troupe {

struct ReplayCounts {
  std::uint64_t tokens = 0, passes = 0;
  std::uint64_t hits = 0, asks = 0;

  double HitRate() const {
    return asks == 0 ? 1 : static_cast<double>(hits) / static_cast<double>(asks);
  }
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
  // Experts that were waited for and whose computing began before all their bytes were there.
  std::uint64_t begun_early = 0;
  double stall_seconds = 0;
  double compute_seconds = 0;
  double reading_seconds = 0;  // of the link
  ChainReport substitution;    // what a chain did, and how often each of its links answered

  PassTime Time() const { return SplitPassTime(Seconds(), reading_seconds, stall_seconds); }
  double Seconds() const { return stall_seconds + compute_seconds; }
};

}  // namespace troupe
