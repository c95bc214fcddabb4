#include "quant/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace troupe {
namespace {

// Four floats in a register of any machine. Sums are made of four partial sums, spelt out because
// no compiler may reorder a sum of floats to get there by itself.
using Lanes = float __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;

Lanes Load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float Total(Lanes v) { return (v[0] + v[2]) + (v[1] + v[3]); }

// Maps x to codes by a multiplication: code = round(clamp(x * inverse + shift)), ties to even.
struct Rounder {
  float inverse, shift;
  Lanes low, high;
  Rounder(Line line, CodeRange range)
      : inverse(line.scale != 0 ? 1 / line.scale : 0),
        shift(-line.min * inverse),
        low(static_cast<float>(range.lowest) - Lanes{}),
        high(static_cast<float>(range.highest) - Lanes{}) {}

  Lanes operator()(Lanes x) const {
    Lanes v = x * inverse + shift;
    v = v < low ? low : v;
    v = v > high ? high : v;
    constexpr float kNoFraction = 12582912.0f;  // 1.5 * 2^23: floats of this size are integers
    return (v + kNoFraction) - kNoFraction;
  }
};

}  // namespace

Moments MomentsAt(Line line, CodeRange range, WeightedValues values) {
  const Rounder code_of(line, range);
  Lanes w{}, wx{}, wc{}, wcc{}, wcx{};
  for (std::size_t i = 0; i < values.x.size(); i += kLanes) {
    const Lanes x = Load(&values.x[i]);
    const Lanes weight = Load(&values.w[i]);
    const Lanes c = code_of(x);
    const Lanes weighted_c = weight * c;
    w += weight;
    wx += weight * x;
    wc += weighted_c;
    wcc += weighted_c * c;
    wcx += weighted_c * x;
  }
  return {Total(w), Total(wx), Total(wc), Total(wcc), Total(wcx)};
}

float ErrorAt(Line line, CodeRange range, WeightedValues values) {
  const Rounder code_of(line, range);
  Lanes error{};
  for (std::size_t i = 0; i < values.x.size(); i += kLanes) {
    const Lanes x = Load(&values.x[i]);
    const Lanes miss = line.scale * code_of(x) + line.min - x;
    error += Load(&values.w[i]) * miss * miss;
  }
  return Total(error);
}

void CodesAt(Line line, CodeRange range, std::span<const float> x, std::span<std::uint8_t> codes) {
  const Rounder code_of(line, range);
  for (std::size_t i = 0; i < x.size(); i += kLanes) {
    const Lanes c = code_of(Load(&x[i])) - static_cast<float>(range.lowest);
    for (std::size_t k = 0; k < kLanes; ++k) codes[i + k] = static_cast<std::uint8_t>(c[k]);
  }
}

namespace {

// Least squares over a line through 0: what it explains of the sum of squares is its merit.
struct Candidate {
  Line line;
  float explained = 0;
};

Candidate SolveScale(const Moments& m) {
  if (!(m.wcc > 0)) return {};
  const float scale = m.wcx / m.wcc;
  return {{scale, 0}, scale * m.wcx};
}

Candidate SolveScaleAndMin(const Moments& m, MinSign sign) {
  const double w = m.w, wx = m.wx, wc = m.wc, wcc = m.wcc, wcx = m.wcx;
  const double det = w * wcc - wc * wc;
  // Where the codes are all but equal, the difference is made of the rounding errors of the sums.
  constexpr double kLeastSpread = 1e-4;
  if (det > kLeastSpread * w * wcc) {
    const double scale = (w * wcx - wc * wx) / det;
    const double min = (wcc * wx - wc * wcx) / det;
    if (sign == MinSign::kAny || min <= 0) {
      return {{static_cast<float>(scale), static_cast<float>(min)},
              static_cast<float>(scale * wcx + min * wx)};
    }
  }
  return SolveScale(m);
}

// Rounding with the best line and fitting it again can only explain more, until it changes nothing.
template <typename Solve>
Candidate Polish(Candidate best, CodeRange range, WeightedValues values, Solve&& solve) {
  constexpr int kMaxRounds = 4;
  for (int round = 0; round < kMaxRounds; ++round) {
    const Candidate next = solve(MomentsAt(best.line, range, values));
    if (!(next.explained > best.explained)) break;
    best = next;
  }
  return best;
}

}  // namespace

// The trial scales below are relative to the one that makes the values just fit the range: smaller
// ones clip the extremes, larger ones can happen to lie well. Finer steps gain next to nothing.

Line FitScale(CodeRange range, WeightedValues values) {
  float extreme = 0;
  for (const float x : values.x) {
    if (std::fabs(x) > std::fabs(extreme)) extreme = x;
  }
  if (extreme == 0) return {};
  // The end of the range with the larger magnitude takes the largest magnitude: one level more.
  const auto end = static_cast<float>(-range.lowest > range.highest ? range.lowest : range.highest);
  Candidate best;
  for (int step = -8; step <= 8; ++step) {
    const float scale = extreme / end * (1 + 0.03f * static_cast<float>(step));
    const Candidate c = SolveScale(MomentsAt({scale, 0}, range, values));
    if (c.explained > best.explained) best = c;
  }
  return Polish(best, range, values, SolveScale).line;
}

// As the inverse of the scale rises from 0, codes leave 0 one by one, each at a known place;
// between two such places none changes, and least squares has one answer for them.
Line FitScaleExactly(CodeRange range, WeightedValues values) {
  // The inverse of the scale from which on value i has the next code, and i below it: as bits,
  // which order what is not negative as floats do, and sort faster than pairs. Equal
  // places come in one order everywhere: sums of floats depend on it.
  std::vector<std::uint64_t> steps;
  const auto place = [](std::uint64_t step) { return step >> 32; };
  Line best;
  double explained = 0;
  for (const float sign : {1.0f, -1.0f}) {
    steps.clear();
    for (std::uint32_t i = 0; i < values.x.size(); ++i) {
      const float x = sign * values.x[i];
      const int codes = x > 0 ? range.highest : -range.lowest;
      for (int c = 0; x != 0 && c < codes; ++c) {
        const float at = (static_cast<float>(c) + 0.5f) / std::fabs(x);
        steps.push_back(std::uint64_t{std::bit_cast<std::uint32_t>(at)} << 32 | i);
      }
    }
    std::ranges::sort(steps);
    std::vector<int> codes(values.x.size());
    double wcc = 0, wcx = 0;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const auto i = static_cast<std::uint32_t>(steps[s]);
      const double w = values.w[i];
      wcc += w * (2 * codes[i]++ + 1);
      wcx += w * std::fabs(static_cast<double>(values.x[i]));
      if (s + 1 < steps.size() && place(steps[s + 1]) == place(steps[s])) continue;
      if (wcx * wcx > explained * wcc) {
        explained = wcx * wcx / wcc;
        best.scale = static_cast<float>(sign * (wcx / wcc));
      }
    }
  }
  return best;
}

Line FitScaleAndMin(int highest_code, MinSign sign, WeightedValues values) {
  float low = values.x[0];
  float high = values.x[0];
  for (const float x : values.x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  if (sign == MinSign::kNotPositive && low > 0) low = 0;
  if (!(high > low)) return {0, low};
  const CodeRange range = {0, highest_code};
  const auto solve = [sign](const Moments& m) { return SolveScaleAndMin(m, sign); };
  const auto steps = static_cast<float>(highest_code);
  Candidate best;
  for (int step = -4; step <= 4; ++step) {
    const float scale = (high - low) / steps * (1 + 0.04f * static_cast<float>(step));
    const float beyond = high - low - scale * steps;  // what the range does not cover
    for (const float part_below : {0.0f, 0.5f, 1.0f}) {
      const Candidate c = solve(MomentsAt({scale, low + part_below * beyond}, range, values));
      if (c.explained > best.explained) best = c;
    }
  }
  return Polish(best, range, values, solve).line;
}

}  // namespace troupe
