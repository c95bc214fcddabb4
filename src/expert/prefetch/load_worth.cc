#include "expert/prefetch/load_worth.h"

#include <algorithm>

namespace troupe {
namespace {

// What it is worth where it is asked for, and where it is not.
struct Ends {
  double right = 0, wrong = 0;
};

Ends EndsOf(const LoadAhead& load, const LinkPace& pace) {
  const double end = load.queued + pace.load;
  const double asked = load.idle_left + (load.ahead - 1) * pace.idle_a_layer;
  // Of a load that is under way when it is asked for only the rest is waited for.
  Ends ends{.right = std::clamp(asked - load.queued, 0.0, pace.load),
            .wrong = -pace.regret * pace.load};
  // Layers that ask while it is being read. Before it begins they go first, and whoever waits for
  // its end meets nothing of it later.
  double still = 1;
  for (std::uint32_t ahead = 1; ahead <= load.ahead + 1 && still > 1e-3; ++ahead) {
    const double asks = load.idle_left + (ahead - 1) * pace.idle_a_layer;
    if (asks >= end) break;
    if (asks < load.queued) continue;
    const double waits = still * pace.asks * std::min(end - asks, pace.held);
    // The layer that it is for has to have it loaded anyway.
    if (ahead < load.ahead) ends.right -= waits;
    ends.wrong -= waits;
    still *= 1 - pace.asks;
  }
  return ends;
}

}  // namespace

double WorthOfLoad(const LoadAhead& load, const LinkPace& pace) {
  if (pace.load <= 0) return 0;
  const Ends ends = EndsOf(load, pace);
  return load.chance * ends.right + (1 - load.chance) * ends.wrong;
}

double LeastChance(const LoadAhead& load, const LinkPace& pace) {
  const Ends ends = EndsOf(load, pace);
  if (pace.load <= 0 || ends.right <= 0) return 2;
  return -ends.wrong / (ends.right - ends.wrong);
}

}  // namespace troupe
