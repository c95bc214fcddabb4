#include "quant/panel_reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/rng.h"
#include "quant/block_codes.h"
#include "quant/random_rows.h"
#include "quant/reference.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// The sum of the magnitudes that the canonical arithmetic adds up: |w| * |x| for plain numbers,
// and scale and min parts apart for types in which they may cancel.
double Magnitude(TensorType type, std::span<const std::byte> row, std::span<const float> x) {
  double sum = 0;
  const bool blocks = WithBlockType(type, [&]<typename Block>() {
    for (std::size_t i = 0; i < x.size(); ++i) {
      Block b;
      std::memcpy(&b, row.data() + i / Block::kElems * sizeof b, sizeof b);
      double scale = 0, min = 0;
      if constexpr (requires { Block::kGroups; }) {
        const std::size_t run = i % Block::kElems / Block::kGroupElems;
        scale = std::fabs(GroupScalesOf(b)[run]);
        if constexpr (Block::kHasMin) min = std::fabs(GroupMinsOf(b)[run]);
      } else {
        scale = std::fabs(ScaleOf(b));
        if constexpr (requires { b.m; }) min = std::fabs(HalfToFloat(b.m));
      }
      const int level = LevelOf<Block>(UnpackCodes(b)[i % Block::kElems]);
      sum += (scale * std::abs(level) + min) * std::fabs(static_cast<double>(x[i]));
    }
  });
  return blocks ? sum : DotRow(type, row, x).magnitude;
}

class PanelDotOfType : public ::testing::TestWithParam<TensorType> {};

INSTANTIATE_TEST_SUITE_P(Types, PanelDotOfType, ::testing::ValuesIn(AllTypes()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST_P(PanelDotOfType, IsTheProductOfTheNumbersUpToItsRoundings) {
  Rng rng(TestSeed());
  const bool plain = Info(GetParam()).block_elems == 1;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const std::size_t cols = plain ? 333 : 512, tokens = 2;
    std::vector<float> values(tokens * cols);
    for (float& v : values) v = static_cast<float>(rng.Normal());
    std::vector<std::byte> storage(plain ? 0 : ActivationBytes(tokens, cols));
    const Activations x = MakeActivations(values.data(), cols, tokens, cols, storage);
    const auto row = RandomRows(GetParam(), 1, cols, rng);
    for (std::size_t token = 0; token < tokens; ++token) {
      std::vector<float> exact(x.Values(token), x.Values(token) + cols);
      if (!plain) {
        // The product is with what the codes stand for; scale * code is exact in double, and its
        // rounding to float here is the 1 in the bound below.
        QuantizeActivationsReference(x, token);
        for (std::size_t k = 0; k < cols; ++k) {
          exact[k] = x.Groups(token)[k / 32].scale *
                     static_cast<float>(x.Groups(token)[k / 32].codes[k % 32]);
        }
      }
      const double expected = DotRow(GetParam(), row, exact).value;
      // Each term passes at most 4 roundings in t, one a group (or column) in acc, and 3 in the
      // dequantized weight and activation that DotRow used.
      const double roundings = 8 + static_cast<double>(plain ? cols : cols / 32);
      const double bound = roundings * 0x1p-24 * Magnitude(GetParam(), row, exact);
      EXPECT_NEAR(PanelDotReference(GetParam(), row, x, token), expected, bound);
    }
  }
}

TEST(PanelDot, IsNanWhenAnActivationIs) {
  Rng rng(TestSeed());
  std::vector<float> values(256, 1.0f);
  values[100] = std::nanf("");
  std::vector<std::byte> storage(ActivationBytes(1, 256));
  const Activations x = MakeActivations(values.data(), 256, 1, 256, storage);
  QuantizeActivationsReference(x, 0);
  for (const auto& info : AllTensorTypes()) {
    EXPECT_TRUE(std::isnan(PanelDotReference(info.type, RandomRows(info.type, 1, 256, rng), x, 0)))
        << info.name;
  }
}

}  // namespace
}  // namespace troupe
