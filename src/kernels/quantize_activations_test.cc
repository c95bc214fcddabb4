#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "kernels/quantize_activations.h"
#include "kernels/target.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Ordinary numbers, with now and then what a kernel could get wrong: ties, zeros, extremes.
float AnyValue(Rng& rng) {
  const auto ordinary = static_cast<float>(rng.Normal());
  switch (rng.Below(64)) {
    case 0:
      return 0.0f;
    case 1:
      return -0.0f;
    case 2:
      return std::round(ordinary * 4.0f) / 2.0f;
    case 3:
      return ordinary * 1e-38f;
    default:
      return ordinary;
  }
}

TEST(QuantizeActivations, EqualsTheReferenceOnEveryTarget) {
  Rng rng(TestSeed());
  for (const std::size_t cols : {32u, 64u, 96u, 2048u}) {
    const std::size_t tokens = 7, stride = cols + 3;
    std::vector<float> values(tokens * stride);
    for (float& v : values) v = AnyValue(rng);
    // Whole groups of ties, of zeros, of tiny values, and with an infinity and a NaN in them.
    for (std::size_t i = 0; i < 32; ++i) {
      values[stride + i] = static_cast<float>(static_cast<int>(i) - 16) + 0.5f;
      values[2 * stride + i] = 0.0f;
      values[3 * stride + i] *= 1e-33f;
      values[6 * stride + i] *= 1e37f;
    }
    values[stride] = 127.0f;
    values[4 * stride + 5] = -std::numeric_limits<float>::infinity();
    values[5 * stride + 31] = std::nanf("");
    std::vector<std::byte> expected(ActivationBytes(tokens, cols));
    const Activations reference = MakeActivations(values.data(), stride, tokens, cols, expected);
    for (std::size_t t = 0; t < tokens; ++t) QuantizeActivationsReference(reference, t);
    for (const Target target : SupportedTargets()) {
      ForceTarget(target);
      std::vector<std::byte> storage(expected.size(), std::byte{0xcc});
      const Activations x = MakeActivations(values.data(), stride, tokens, cols, storage);
      QuantizeActivations(x, 0, 3);
      QuantizeActivations(x, 3, tokens - 3);
      EXPECT_EQ(storage, expected) << Name(target) << ", " << cols << " columns";
    }
    ForceTarget(std::nullopt);
  }
}

}  // namespace
}  // namespace troupe
