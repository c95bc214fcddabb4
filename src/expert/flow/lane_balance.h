// Two lanes that answer a layer's misses at the same time (SMoE, Algorithm 2): one loads experts
// and computes them, the other computes them where they lie, or wherever else. Best experts are
// loaded, since they will be asked for again; the others go the other way, so that both lanes end
// together. Any two lanes with costs: the second may be a slower tier, a peer, or a CPU beside a
// GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace troupe {

struct LaneCosts {
  double load_seconds = 0;   // an expert
  double other_seconds = 0;  // an expert
};

struct LaneSplit {
  std::uint32_t load = 0;   // the first of the experts, best first
  std::uint32_t other = 0;  // the rest
  double load_seconds = 0;
  double other_seconds = 0;

  double Seconds() const { return load_seconds > other_seconds ? load_seconds : other_seconds; }
  bool operator==(const LaneSplit&) const = default;
};

enum class LaneRule {
  // The next expert goes to the lane that is done first with what it has. As printed, and up to one
  // expert of the slower lane longer than need be: an expert that is alone is always loaded.
  kEndsFirst,
  // To the lane that would be done first with it, too: as short as can be, and ties are loaded.
  kEndsFirstWithIt,
};

LaneSplit BalanceLanes(std::uint32_t experts, const LaneCosts& costs,
                       LaneRule rule = LaneRule::kEndsFirstWithIt);

// The mean of the last `count` measurements.
class WindowMean {
 public:
  explicit WindowMean(std::size_t count) : count_(count) {}

  void Add(double value);
  std::optional<double> Mean() const;  // none before the first

 private:
  std::size_t count_;
  std::deque<double> values_;
};

}  // namespace troupe
