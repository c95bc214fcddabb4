#include "model/expert_source.h"

#include <algorithm>
#include <utility>

namespace troupe {

ExpertUsage ExpertUsage::Since(const ExpertUsage& before) const {
  std::vector<LayerHits> by_layer = layers;
  for (std::size_t i = 0; i < before.layers.size(); ++i) {
    by_layer[i].hits -= before.layers[i].hits;
    by_layer[i].asks -= before.layers[i].asks;
  }
  return {.hits = hits - before.hits,
          .misses = misses - before.misses,
          .use_hits = use_hits - before.use_hits,
          .use_misses = use_misses - before.use_misses,
          .reads = reads - before.reads,
          .bytes_read = bytes_read - before.bytes_read,
          .stall_seconds = stall_seconds - before.stall_seconds,
          .low_copies = low_copies - before.low_copies,
          .low_assignments = low_assignments - before.low_assignments,
          .substituted = substituted - before.substituted,
          .dropped = dropped - before.dropped,
          .deciding_seconds = deciding_seconds - before.deciding_seconds,
          .prefetches = prefetches - before.prefetches,
          .prefetch_useful = prefetch_useful - before.prefetch_useful,
          .prefetch_late = prefetch_late - before.prefetch_late,
          .prefetch_cancelled = prefetch_cancelled - before.prefetch_cancelled,
          .prefetch_wasted = prefetch_wasted - before.prefetch_wasted,
          .prefetch_waiting = prefetch_waiting - before.prefetch_waiting,
          .asks_after_guess = asks_after_guess - before.asks_after_guess,
          .guessed = guessed - before.guessed,
          .expected = expected - before.expected,
          .left_out = left_out - before.left_out,
          .layers = std::move(by_layer)};
}

ExpertUsage& ExpertUsage::operator+=(const ExpertUsage& part) {
  hits += part.hits;
  misses += part.misses;
  use_hits += part.use_hits;
  use_misses += part.use_misses;
  reads += part.reads;
  bytes_read += part.bytes_read;
  stall_seconds += part.stall_seconds;
  low_copies += part.low_copies;
  low_assignments += part.low_assignments;
  substituted += part.substituted;
  dropped += part.dropped;
  deciding_seconds += part.deciding_seconds;
  prefetches += part.prefetches;
  prefetch_useful += part.prefetch_useful;
  prefetch_late += part.prefetch_late;
  prefetch_cancelled += part.prefetch_cancelled;
  prefetch_wasted += part.prefetch_wasted;
  prefetch_waiting += part.prefetch_waiting;
  asks_after_guess += part.asks_after_guess;
  guessed += part.guessed;
  expected += part.expected;
  left_out += part.left_out;
  layers.resize(std::max(layers.size(), part.layers.size()));
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    layers[i].hits += part.layers[i].hits;
    layers[i].asks += part.layers[i].asks;
  }
  return *this;
}

}  // namespace troupe
