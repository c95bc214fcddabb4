// Whether tokens of one kind take longer than those of another, beyond what the loads that each
// needed explain: an analysis of covariance. How much a load adds is fitted, not assumed, as part
// of each is hidden behind computing, and nobody knows how much. Pure.
#pragma once

#include <array>
#include <cstddef>

namespace troupe {

class TokenComparison {
 public:
  enum class Kind { kWith, kWithout };

  void Add(Kind kind, double loads, double seconds);
  // What was seen so far counts for half of what is to come.
  void Age();

  // How much longer a token of kWith takes than one of kWithout that needed as many loads.
  struct Difference {
    double seconds = 0;
    double error = 0;  // one standard deviation of `seconds`
  };
  // Nothing while there are too few of either to tell how much chance there is in it.
  Difference Compare() const;

 private:
  // Moments about the mean, so that ageing is halving.
  struct Sample {
    double count = 0, count2 = 0;   // sums of weights, and of their squares
    double loads = 0, seconds = 0;  // means
    double loads2 = 0, product = 0, seconds2 = 0;
  };

  std::array<Sample, 2> samples_;
};

}  // namespace troupe
