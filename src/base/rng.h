// A small reproducible random generator (xoshiro256**, public domain algorithm by Blackman and
// Vigna): the same seed gives the same numbers on every machine, which std:: distributions do not
// promise. Not for secrets.
#pragma once

#include <array>
#include <cstdint>

namespace troupe {

class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound);  // uniform in [0, bound), bound > 0
  double Uniform();                          // uniform in [0, 1), 53 bits
  double Normal();                           // mean 0, variance 1

  // Satisfies UniformRandomBitGenerator, for std::shuffle.
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~result_type{0}; }
  result_type operator()() { return Next(); }

 private:
  std::array<std::uint64_t, 4> state_;
};

// Uniform in [0, 1), 53 bits, of a place in a stream of numbers, without those before it: for draws
// that may be made in any order, and again.
double UniformAt(std::uint64_t seed, std::uint64_t place);

}  // namespace troupe
