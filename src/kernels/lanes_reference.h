// The scalar truth for lanes-inl.h: a sum over 16 lanes, element i in lane i % 16, in order.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

namespace troupe {

class SixteenLanes {
 public:
  void Add(std::size_t i, float x) { lanes_[i % 16] += x; }
  void AddSquare(std::size_t i, float x) { lanes_[i % 16] = std::fma(x, x, lanes_[i % 16]); }

  float Sum() const {
    float eight[8], four[4], two[2];
    for (int i = 0; i < 8; ++i) eight[i] = lanes_[i] + lanes_[i + 8];
    for (int i = 0; i < 4; ++i) four[i] = eight[i] + eight[i + 4];
    for (int i = 0; i < 2; ++i) two[i] = four[i] + four[i + 2];
    return two[0] + two[1];
  }

 private:
  float lanes_[16] = {};
};

}  // namespace troupe
