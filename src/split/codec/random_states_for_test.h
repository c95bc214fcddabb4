// Rows and bases for tests of codecs: random, with massive channels as trained models have them.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "split/codec/cut_basis.h"

namespace troupe {

// Directions at right angles, by Gram and Schmidt in double.
inline std::vector<float> RandomDirections(std::size_t ranks, std::size_t width,
                                           const std::vector<std::uint32_t>& kept, Rng& rng) {
  std::vector<std::vector<double>> found;
  while (found.size() < ranks) {
    std::vector<double> next(width);
    for (double& x : next) x = rng.Normal();
    for (const std::uint32_t channel : kept) next[channel] = 0;
    const auto remove = [&next](const std::vector<double>& other) {
      double product = 0;
      for (std::size_t i = 0; i < next.size(); ++i) product += next[i] * other[i];
      for (std::size_t i = 0; i < next.size(); ++i) next[i] -= product * other[i];
    };
    for (int twice = 0; twice < 2; ++twice) {
      for (const std::vector<double>& other : found) remove(other);
    }
    double length = 0;
    for (const double x : next) length += x * x;
    for (double& x : next) x /= std::sqrt(length);
    found.push_back(std::move(next));
  }
  std::vector<float> all;
  for (const std::vector<double>& direction : found) {
    for (const double x : direction) all.push_back(static_cast<float>(x));
  }
  return all;
}

inline std::shared_ptr<CutBasis> RandomBasis(std::uint32_t width, std::uint32_t ranks, Rng& rng,
                                             std::vector<std::uint32_t> kept = {}) {
  auto basis = std::make_shared<CutBasis>();
  *basis = {.layer = 3,
            .width = width,
            .kept = std::move(kept),
            .mean = {},
            .finders = {},
            .directions = {}};
  if (ranks == 0) return basis;
  for (std::uint32_t i = 0; i < width; ++i) {
    basis->mean.push_back(static_cast<float>(0.1 * rng.Normal()));
  }
  for (const std::uint32_t channel : basis->kept) basis->mean[channel] = 0;
  // Stretched along random directions, so that the two differ.
  basis->finders = basis->directions = RandomDirections(ranks, width, basis->kept, rng);
  for (std::size_t i = 0; i < basis->directions.size(); ++i) {
    const float stretch = 1 + 0.5f * static_cast<float>(i / width % 3);
    basis->finders[i] *= stretch;
    basis->directions[i] /= stretch;
  }
  return basis;
}

inline std::vector<float> RandomRows(std::size_t rows, const CutBasis& basis, Rng& rng) {
  std::vector<float> all(rows * basis.width);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(3 * rng.Normal());
  for (std::size_t r = 0; r < rows; ++r) {
    for (const std::uint32_t channel : basis.kept) all[r * basis.width + channel] *= 500;
  }
  return all;
}

}  // namespace troupe
