#include "base/rng.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// The output step of splitmix64: a bijection in which every bit decides about every other.
std::uint64_t Mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double ToUniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

}  // namespace

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) word = Mix(seed += kGolden);  // spreads small seeds
}

std::uint64_t Rng::Next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Rng::Below(std::uint64_t bound) {
  TROUPE_CHECK(bound > 0);
  const std::uint64_t unfair =
      (0 - bound) % bound;  // 2^64 mod bound: values that would be favoured
  std::uint64_t value = Next();
  while (value < unfair) value = Next();
  return value % bound;
}

double Rng::Uniform() { return ToUniform(Next()); }

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(6.283185307179586 * Uniform());
}

// The seed is mixed before the place comes in: neighbouring seeds have no places in common.
double UniformAt(std::uint64_t seed, std::uint64_t place) {
  return ToUniform(Mix(Mix(seed + kGolden) + (place + 1) * kGolden));
}

}  // namespace troupe
