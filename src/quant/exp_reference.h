// e^x as every kernel computes it: the scalar reference of kernels/fast_exp-inl.h, bit for bit, and
// what scalar code calls. One fixed sequence of float operations, because libm's last bit differs
// from machine to machine and the engine's answers may not.
//
// x is split into n ln 2 + r with |r| <= ln 2 / 2; e^r is a polynomial of degree 6 (minimax in the
// relative error, which is 3e-9; 1 and r keep their exact coefficients); n goes into the exponent.
// Error below 1 ulp on [-87, 88], e^0 is 1. Below -87 the result is 0, so that it is never
// subnormal; above 88 it is e^88, so that it is never infinite. NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe {

struct ExpConstants {
  static constexpr float kLowest = -87.0f;
  static constexpr float kHighest = 88.0f;
  static constexpr float kLog2E = 0x1.715476p+0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // few bits: n times it is exact
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  // Adding this rounds to an integer and leaves it in the low bits of the sum.
  static constexpr float kRound = 0x1.8p+23f;
  static constexpr float kC2 = 0x1.fffffcp-2f;
  static constexpr float kC3 = 0x1.555490p-3f;
  static constexpr float kC4 = 0x1.5558f2p-5f;
  static constexpr float kC5 = 0x1.123a20p-7f;
  static constexpr float kC6 = 0x1.6a23d0p-10f;
};

inline float ExpReference(float x) {
  using C = ExpConstants;
  if (std::isnan(x)) return x;
  if (x < C::kLowest) return 0.0f;
  if (x > C::kHighest) x = C::kHighest;
  const float shifted = std::fma(x, C::kLog2E, C::kRound);
  const float n = shifted - C::kRound;
  float r = std::fma(n, -C::kLn2High, x);
  r = std::fma(n, -C::kLn2Low, r);
  float p = std::fma(C::kC6, r, C::kC5);
  p = std::fma(p, r, C::kC4);
  p = std::fma(p, r, C::kC3);
  p = std::fma(p, r, C::kC2);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) << 23;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p) + exponent);
}

inline float SigmoidReference(float x) { return 1.0f / (1.0f + ExpReference(-x)); }

// ln(1 + e^x) as every kernel computes it (kernels/delta_gates.cc): the larger of x and 0, plus
// ln(1 + y) with y = e^-|x|, which is 2 atanh(s) with s = y / (2 + y) <= 1/3; of its series the
// terms up to s^13, as the next one is 1.4e-8 of the sum at most.
struct SoftplusConstants {
  static constexpr float kTerms[] = {1.0f / 13, 1.0f / 11, 1.0f / 9, 1.0f / 7, 1.0f / 5, 1.0f / 3};
};

inline float SoftplusReference(float x) {
  const float y = ExpReference(-std::fabs(x));
  const float s = y / (2.0f + y);
  const float square = s * s;
  float p = SoftplusConstants::kTerms[0];
  for (int i = 1; i < 6; ++i) p = std::fma(p, square, SoftplusConstants::kTerms[i]);
  const float twice = s + s;
  return (x > 0 ? x : 0.0f) + std::fma(twice * square, p, twice);
}

}  // namespace troupe
