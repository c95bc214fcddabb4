#include "base/rng.h"

#include <bit>
#include <cmath>

#include "base/check.h"

namespace troupe {

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t& word : state_) {  // splitmix64: spreads small seeds over the state
    seed += 0x9e3779b97f4a7c15u;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
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

double Rng::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double Rng::Normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
  return radius * std::cos(6.283185307179586 * Uniform());
}

}  // namespace troupe
