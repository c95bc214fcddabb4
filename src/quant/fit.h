// Least-squares fits of a few numbers to a uniform grid: which scale (and min) makes
// x[i] ~ scale * code + min with small integer codes and the least weighted squared error. These
// searches make up the quantizers; they know nothing of blocks. Values and weights should
// be within a few orders of magnitude of 1, so that their fourth powers stay normal floats. Sums
// run in fixed lanes: the same bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

// Values, and the weight of a squared error in each: spans of the same size, a multiple of 8.
struct WeightedValues {
  std::span<const float> x;
  std::span<const float> w;
};

struct CodeRange {
  int lowest;
  int highest;
};

// x ~ scale * code + min; scale 0 makes all codes 0.
struct Line {
  float scale = 0;
  float min = 0;
};

// Sums over the values with codes c: everything least squares needs.
struct Moments {
  float w = 0, wx = 0, wc = 0, wcc = 0, wcx = 0;
};

// The codes are those nearest to (x - min) / scale within the range, ties to even.
Moments MomentsAt(Line line, CodeRange range, WeightedValues values);
float ErrorAt(Line line, CodeRange range, WeightedValues values);
void CodesAt(Line line, CodeRange range, std::span<const float> x, std::span<std::uint8_t> codes);

// A good line through 0: candidates around the one that maps the largest magnitude to the
// end of the range, each improved by least squares, the best one until it no longer changes.
Line FitScale(CodeRange range, WeightedValues values);

// The best line through 0: tries all codes that some scale makes the nearest ones. Sorts values
// times codes places, so it is for ranges of few codes.
Line FitScaleExactly(CodeRange range, WeightedValues values);

// Like FitScale with a min, for codes from 0 on.
enum class MinSign { kAny, kNotPositive };
Line FitScaleAndMin(int highest_code, MinSign sign, WeightedValues values);

}  // namespace troupe
