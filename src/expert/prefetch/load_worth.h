// What it is worth to begin a load before it is asked for, in seconds that nobody waits: the wait
// that it saves if its layer asks for it, less the wait of demands that find the link busy with it,
// less the price of a load that was for nothing: of its bytes, and of what it pushed out. Where
// that is not more than nothing the load does not begin; so reading ahead comes to rest where
// nothing is to be gained: on a link that demand keeps busy, of guesses that are rarely right, of
// experts that are known too late. Pure, and without memory.
//
// Time is that in which the link has no demand to serve: loads ahead get no other.
#pragma once

#include <cstdint>

namespace troupe {

// What is known of link and layers, in seconds.
struct LinkPace {
  double load = 0;          // that one expert takes; 0: not known, and nothing is worth anything
  double held = 0;          // that a demand waits at most for a load ahead that has begun
  double idle_a_layer = 0;  // of a layer's time
  double asks = 0;          // chance that a layer has to load something on demand
  double regret = 0;        // the price of a load that was for nothing, in times of a load
};

struct LoadAhead {
  double chance = 0;        // that its layer asks for it
  std::uint32_t ahead = 1;  // 1: for the layer that asks next
  double idle_left = 0;     // until the next layer asks
  double queued = 0;        // until it would begin
};

double WorthOfLoad(const LoadAhead& load, const LinkPace& pace);
// From which chance on it is worth more than nothing; above 1 if from none.
double LeastChance(const LoadAhead& load, const LinkPace& pace);

}  // namespace troupe
