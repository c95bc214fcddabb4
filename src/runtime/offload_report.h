// What the experts outside memory are read through, and what that has done so far: a value, for
// records, explanations and tests. Usage by request is the engine's (expert_usage.h).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "expert/cache/expert_cache.h"
#include "expert/flow/distribution_judge.h"
#include "expert/prefetch/prefetcher.h"
#include "expert/row_form.h"
#include "expert/substitution/low_copies.h"
#include "expert/substitution/substitution_chain.h"
#include "store/expert_loader.h"

namespace troupe {

// What the cache began with.
struct FilledSlots {
  std::uint32_t experts = 0;
  double seconds = 0;
};

struct OffloadReport {
  struct Prefetch {
    std::string predictor;
    PrefetchStats stats;
    std::uint64_t governor_rests = 0;
    double wasted_share = 0;
  };

  CacheShape shape;
  std::string store, reader, policy;
  std::uint64_t device = 0;  // that holds the store's files
  CacheStats cache;
  std::uint64_t shielded = 0;  // victims that the policy spared for the layer under way
  LoaderStats loads;
  // Experts whose gate and up were computed with before their down had come.
  std::uint64_t begun_before_down = 0;
  FilledSlots filled;
  double recent_bytes_per_second = 0;  // of the medium; 0: nothing was read yet
  std::optional<Prefetch> prefetch;    // absent: loads begin when they are asked for

  // Where peers may be asked: what came of it, and the last layers of which that was decided.
  std::vector<DistributionReport> distribution;
  std::deque<JudgedLayer> judged;
  bool sharing_given_up = false;
  RowForm peer_answers = RowForm::kFloat;

  LowCopyOptions low_copies;  // in force
  ChainReport substitution;   // the same

  std::string predictor() const { return prefetch ? prefetch->predictor : "none"; }
  bool exact() const {
    return substitution.exact() && !low_copies.any() && peer_answers == RowForm::kFloat;
  }
};

}  // namespace troupe
