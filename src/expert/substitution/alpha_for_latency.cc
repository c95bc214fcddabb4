#include "expert/substitution/alpha_for_latency.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace troupe {
namespace {

constexpr std::uint32_t kMostDegree = 3;
constexpr int kSteps = 1000;  // of the search over alpha: finer than anybody can measure

// Solves the normal equations in place, with pivots: four unknowns at most, alphas within [0, 1].
std::vector<double> Solve(std::array<std::array<double, kMostDegree + 2>, kMostDegree + 1> rows,
                          std::uint32_t n) {
  for (std::uint32_t column = 0; column < n; ++column) {
    std::uint32_t pivot = column;
    for (std::uint32_t row = column + 1; row < n; ++row) {
      if (std::abs(rows[row][column]) > std::abs(rows[pivot][column])) pivot = row;
    }
    std::swap(rows[column], rows[pivot]);
    for (std::uint32_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = rows[row][column] / rows[column][column];
      for (std::uint32_t c = column; c <= n; ++c) rows[row][c] -= factor * rows[column][c];
    }
  }
  std::vector<double> solution(n);
  for (std::uint32_t i = 0; i < n; ++i) solution[i] = rows[i][n] / rows[i][i];
  return solution;
}

}  // namespace

double PolynomialAt(std::span<const double> coefficients, double x) {
  double value = 0;
  for (std::size_t i = coefficients.size(); i-- > 0;) value = value * x + coefficients[i];
  return value;
}

Result<std::vector<double>> FitPolynomial(std::span<const MeasuredAlpha> measured,
                                          std::uint32_t degree) {
  if (degree > kMostDegree) {
    return InvalidArgument("a polynomial of degree {}, at most {} expected", degree, kMostDegree);
  }
  std::set<double> alphas;
  for (const MeasuredAlpha& point : measured) {
    if (!std::isfinite(point.alpha) || !std::isfinite(point.seconds)) {
      return InvalidArgument("a measured time of {} s at alpha {}, numbers expected", point.seconds,
                             point.alpha);
    }
    alphas.insert(point.alpha);
  }
  if (alphas.size() <= degree) {
    return InvalidArgument("times measured at {} different alphas, at least {} expected",
                           alphas.size(), degree + 1);
  }
  const std::uint32_t n = degree + 1;
  std::array<std::array<double, kMostDegree + 2>, kMostDegree + 1> rows{};
  for (const MeasuredAlpha& point : measured) {
    std::array<double, kMostDegree + 1> powers;
    for (std::uint32_t i = 0; i < n; ++i) powers[i] = std::pow(point.alpha, i);
    for (std::uint32_t i = 0; i < n; ++i) {
      for (std::uint32_t j = 0; j < n; ++j) rows[i][j] += powers[i] * powers[j];
      rows[i][n] += powers[i] * point.seconds;
    }
  }
  return Solve(rows, n);
}

Result<AlphaChoice> ChooseAlpha(std::span<const MeasuredAlpha> measured, double target_seconds,
                                std::uint32_t degree) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<double> fit, FitPolynomial(measured, degree));
  const double most = std::ranges::max(measured, {}, &MeasuredAlpha::alpha).alpha;
  AlphaChoice choice{.alpha = 0, .seconds = PolynomialAt(fit, 0)};
  for (int step = 0; step <= kSteps; ++step) {
    const double alpha = most * step / kSteps;
    const double seconds = PolynomialAt(fit, alpha);
    if (seconds <= target_seconds) return AlphaChoice{alpha, seconds, true};
    if (seconds < choice.seconds) choice = {alpha, seconds, false};
  }
  return choice;
}

}  // namespace troupe
