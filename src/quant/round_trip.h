// What tests of the quantizers share: rows of values, the way there and back, and errors.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.h"
#include "quant/dequantize.h"
#include "quant/quantize.h"

namespace troupe {

using Floats = std::vector<float>;

// FNV-1a.
inline std::uint64_t Hash(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

inline std::vector<std::byte> Quantize(TensorType type, const Floats& x,
                                       const Floats& importance = {},
                                       Rounding rounding = Rounding::kReference) {
  std::vector<std::byte> row(RowBytes(type, x.size()).count());
  QuantizeRow(type, x, row, importance, rounding);
  return row;
}

inline Floats Dequantize(TensorType type, const std::vector<std::byte>& row, std::size_t elems) {
  Floats x(elems);
  DequantizeRow(type, row, x);
  return x;
}

inline Floats RoundTrip(TensorType type, const Floats& x, const Floats& importance = {},
                        Rounding rounding = Rounding::kReference) {
  return Dequantize(type, Quantize(type, x, importance, rounding), x.size());
}

// Made by exact arithmetic, unlike the others: the same numbers on every machine.
inline Floats BellShapedValues(std::size_t n, double size, Rng& rng) {
  Floats x(n);
  for (float& v : x) {
    double sum = -2;
    for (int k = 0; k < 4; ++k) sum += rng.Uniform();
    v = static_cast<float>(size * sum);
  }
  return x;
}

inline Floats NormalValues(std::size_t n, double deviation, Rng& rng) {
  Floats x(n);
  for (float& v : x) v = static_cast<float>(deviation * rng.Normal());
  return x;
}

// Many small values and a few large ones: Student's t with three degrees of freedom.
inline Floats HeavyTailedValues(std::size_t n, double size, Rng& rng) {
  Floats x(n);
  for (float& v : x) {
    double squares = 0;
    for (int k = 0; k < 3; ++k) squares += std::pow(rng.Normal(), 2);
    v = static_cast<float>(size * rng.Normal() / std::sqrt(squares / 3));
  }
  return x;
}

inline double SquaredError(const Floats& x, const Floats& y, const Floats& weights = {}) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += (weights.empty() ? 1.0 : weights[i]) * std::pow(double{x[i]} - double{y[i]}, 2);
  }
  return sum;
}

inline double SumOfSquares(const Floats& x) { return SquaredError(x, Floats(x.size())); }

}  // namespace troupe
