// How experts that are not in memory may be answered. Exact is the default, and the other three are
// ways to say what may be lost for speed. They only matter if not all experts fit into memory.
#pragma once

#include <string>
#include <variant>

namespace troupe {

// The same bytes as with everything in memory.
struct Exact {
  bool operator==(const Exact&) const = default;
};
// A chain of substitution policies, as `troupe run --substitute` takes it: "smoe:alpha=0.6".
struct Chain {
  std::string policies;
  bool operator==(const Chain&) const = default;
};
// The fastest chain that was measured to cost at most this share of perplexity: 0.01 is 1 %. Needs
// the measurements of `troupe calibrate --measure-quality`, as the next does.
struct LossLimit {
  double share = 0;
  bool operator==(const LossLimit&) const = default;
};
// The chain that loses least among those that bring a token to this time.
struct LatencyTarget {
  double token_seconds = 0;
  bool operator==(const LatencyTarget&) const = default;
};

using Lossiness = std::variant<Exact, Chain, LossLimit, LatencyTarget>;

}  // namespace troupe
