#include "quant/activations.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

struct OneToken {
  explicit OneToken(std::vector<float> x)
      : values(std::move(x)),
        storage(ActivationBytes(1, values.size())),
        view(MakeActivations(values.data(), values.size(), 1, values.size(), storage)) {
    QuantizeActivationsReference(view, 0);
  }
  const ActivationGroup& Group(std::size_t i) const { return view.Groups(0)[i]; }
  int Code(std::size_t i) const { return Group(i / 32).codes[i % 32]; }

  std::vector<float> values;
  std::vector<std::byte> storage;
  Activations view;
};

TEST(QuantizedActivations, AreWithinHalfAStepOfTheValues) {
  Rng rng(TestSeed());
  for (int exponent = -90; exponent <= 90; exponent += 15) {
    std::vector<float> x(256);
    for (float& v : x) v = std::ldexp(static_cast<float>(rng.Normal()), exponent);
    const OneToken token(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact =
          static_cast<double>(x[i]) / static_cast<double>(token.Group(i / 32).scale);
      // x * inverse is off x / scale by 3 roundings of 2^-24, each relative to at most 127.
      EXPECT_LE(std::fabs(exact - token.Code(i)), 0.5 + 3 * 127 * 0x1p-24) << i;
    }
  }
}

TEST(QuantizedActivations, ReachTheFullRangeAndSumTheirCodes) {
  std::vector<float> x(32);
  for (std::size_t i = 0; i < 32; ++i) x[i] = static_cast<float>(i) - 20.0f;
  x[0] = -127.0f;
  const OneToken token(x);
  EXPECT_EQ(token.Code(0), -127);
  const ActivationGroup& group = token.Group(0);
  EXPECT_EQ(group.scale, 1.0f);
  EXPECT_EQ(group.half_sum[0], -127 + (-19 - 5) * 15 / 2);
  EXPECT_EQ(group.half_sum[1], (-4 + 11) * 16 / 2);
  EXPECT_EQ(group.sum, group.half_sum[0] + group.half_sum[1]);
}

TEST(QuantizedActivations, RoundTiesToEven) {
  std::vector<float> x(32);
  x[0] = 127.0f;
  x[1] = 0.5f, x[2] = 1.5f, x[3] = -2.5f, x[4] = -3.5f;
  const OneToken token(x);
  const std::int8_t* codes = token.Group(0).codes;
  EXPECT_EQ(std::vector<int>(codes, codes + 5), (std::vector<int>{127, 0, 2, -2, -4}));
}

TEST(QuantizedActivations, AreZeroForGroupsOfZerosAndOfTinyValues) {
  for (float v : {0.0f, -0.0f, 1e-31f, std::numeric_limits<float>::denorm_min()}) {
    const OneToken token(std::vector<float>(32, v));
    EXPECT_EQ(token.Group(0).scale, 0.0f);
    EXPECT_EQ(token.Code(31), 0);
    EXPECT_EQ(token.Group(0).sum, 0);
  }
}

TEST(QuantizedActivations, PoisonOnlyTheGroupThatIsNotFinite) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> x(64, 1.0f);
    x[40] = bad;
    const OneToken token(x);
    EXPECT_EQ(token.Code(0), 127);
    EXPECT_TRUE(std::isnan(token.Group(1).scale));
    EXPECT_EQ(token.Code(32), 0);
    EXPECT_EQ(token.Group(1).sum, 0);
  }
}

}  // namespace
}  // namespace troupe
