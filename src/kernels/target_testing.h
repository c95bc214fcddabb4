// For tests of kernels: the same check on every target of this machine, and floats as bits, because
// == takes -0 for 0.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/rng.h"
#include "kernels/target.h"

namespace troupe {

template <typename Check>
void ForEachTarget(Check&& check) {
  for (Target target : SupportedTargets()) {
    SCOPED_TRACE(Name(target));
    ForceTarget(target);
    check();
    if (::testing::Test::HasFatalFailure()) break;
  }
  ForceTarget(std::nullopt);
}

inline std::vector<std::uint32_t> Bits(std::span<const float> floats) {
  std::vector<std::uint32_t> bits;
  bits.reserve(floats.size());
  for (float f : floats) bits.push_back(std::bit_cast<std::uint32_t>(f));
  return bits;
}

inline std::vector<float> NormalFloats(Rng& rng, std::size_t n, double deviation = 1.0) {
  std::vector<float> floats(n);
  for (float& f : floats) f = static_cast<float>(rng.Normal() * deviation);
  return floats;
}

}  // namespace troupe
