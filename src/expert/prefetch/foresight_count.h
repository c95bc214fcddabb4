// Counts how well and how early it was foreseen which experts have to be loaded
// (troupe::Foresight): every guess of a layer against what the layer asks for. Passes of decode
// alone: of a prompt, that uses nearly everything, it says little. Pure.
#pragma once

#include <troupe/foresight.h>

#include <span>
#include <vector>

#include "base/clock.h"
#include "expert/expert_id.h"
#include "expert/prefetch/miss_foresight.h"

namespace troupe {

// What one guess said of one expert.
struct SaidOfExpert {
  std::uint32_t expert = 0;
  std::uint32_t ahead = 0;  // layers
  double odds = 0;
  Nanos when = 0;
  bool was_absent = false;
  bool no_slot = false;  // its load found none
};

class ForesightCount {
 public:
  // From which odds on a guess counts as likely.
  static constexpr double kLikely = 0.5;

  // All that was said of the layer that asks, in the order in which it was said.
  void OnLayerAsks(std::span<const ExpertDemand> demands, std::span<const SaidOfExpert> said,
                   Nanos now);
  // In place of it: what follows is not counted.
  void OnOtherPass();
  // Each of these demands once; `needed`: it had to be loaded, on demand or ahead.
  void OnFound(std::uint32_t expert, bool needed);
  // After all of them; 0: not known, and nothing counts as known in time.
  void OnLoadSeconds(double load_seconds);

  // What is told of an expert that the layer asked for: of the first guess that was likely, or else
  // of the one with the best odds.
  MissForesight Of(std::uint32_t expert) const;
  const Foresight& sums() const { return sums_; }

 private:
  const SaidOfExpert* Best(std::uint32_t expert) const;

  std::vector<std::uint32_t> unfound_;  // of the layer's demands
  std::vector<SaidOfExpert> said_;
  Nanos now_ = 0;
  std::vector<Nanos> leads_;  // of the likely ones among the layer's needed loads
  Foresight sums_;
};

}  // namespace troupe
