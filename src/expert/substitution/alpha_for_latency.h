// The least alpha that meets a latency target (SMoE, Eq. 5): measured times per token are fitted by
// a polynomial of low degree, and the smallest alpha is taken whose fitted time is within the
// target. Quality falls with alpha, so the smallest is the best.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct MeasuredAlpha {
  double alpha = 0;
  double seconds = 0;  // a token
};

struct AlphaChoice {
  double alpha = 0;
  double seconds = 0;         // expected
  bool meets_target = false;  // if not, alpha is the one that comes nearest to it
};

// Values of a polynomial with these coefficients, the constant first.
double PolynomialAt(std::span<const double> coefficients, double x);

// Least squares; needs more different alphas than the degree, which is at most 3.
Result<std::vector<double>> FitPolynomial(std::span<const MeasuredAlpha> measured,
                                          std::uint32_t degree);

// Looks no further than the largest alpha that was measured: a polynomial says nothing beyond.
Result<AlphaChoice> ChooseAlpha(std::span<const MeasuredAlpha> measured, double target_seconds,
                                std::uint32_t degree = 2);

}  // namespace troupe
