// The most hits that a cache can have on a recorded run of passes, each of whose layers asks for
// all of its experts at once (the offline optimum). It is told of every ask when the same expert is
// asked for next, and counts; it is no policy, since no order of evictions and loads within a layer
// is given, and the best one is taken.
//
// What a cache may hold after a layer's asks D, where it held S before them:
//   - if D fits into the slots that the layer is sure of: all of D, which is pinned until the layer
//     is over, and of S whatever else fits;
//   - otherwise, as then experts take turns in slots: of S and D together whatever fits. The same
//     holds where something else than a slot may answer a miss.
// A hit is an expert of D that is in S. Kept is what is needed soonest (Belady's rule for passes).
// No run of an ExpertCache of the same shape that loads what is asked for hits more often, whatever
// its policy; on passes that fit, some run hits as often.
//
// With quotas every layer has a cache of its own: its quota and the slots that no other layer is
// sure of. Slots that are in no quota are so counted for each layer, though only one at a time can
// have them: there it is a bound. So it is of a pool with a floor: what a layer asks for stays only
// where it fits beside the floors of all others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expert/cache/belady.h"
#include "expert/cache/eviction_policy.h"

namespace troupe {

class PassOptimum {
 public:
  // `loads_all`: every miss is given a slot.
  explicit PassOptimum(CacheShape shape, bool loads_all = true);

  // One layer's asks of one pass, each expert once; returns how many of them are hits. `next` is
  // the position of the same expert's next ask in the run: all asks of a layer's pass follow each
  // other.
  std::uint32_t Play(std::uint32_t layer, std::span<const Optimum::Use> asks);

  // Experts that it can hold at once, as things are.
  std::uint32_t CapacityOf(std::uint32_t layer) const;
  std::uint64_t hits() const { return hits_; }
  std::uint64_t evictions() const { return evictions_; }

 private:
  struct Held {
    std::uint64_t next;
    std::size_t index;  // in the grid
  };

  // Slots that it has whatever the other layers hold.
  std::uint32_t SureOf(std::uint32_t layer) const;
  void NoteAsks(std::uint32_t layer, std::span<const Optimum::Use> asks);
  void KeepSoonest(std::vector<Held>& held, std::size_t count);

  CacheShape shape_;
  bool loads_all_;
  std::vector<std::vector<Held>> held_;  // by layer, or of the one pool
  std::vector<bool> resident_;           // by grid index
  std::vector<bool> asked_;              // at any time
  std::vector<bool> now_;                // by the layer under way
  // With quotas: experts of each layer that were ever asked for, as far as its quota goes. It holds
  // as many from then on.
  std::vector<std::uint32_t> sure_;
  std::uint64_t all_sure_ = 0;
  // A layer without a quota has asked: it takes one slot of a layer that was sure of it.
  bool one_is_taken_ = false;
  std::uint64_t hits_ = 0, evictions_ = 0;
};

}  // namespace troupe
