// What `best` promises over `plain`: no block that is stored worse, and most of them better.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "quant/normalize.h"
#include "quant/quantize.h"
#include "quant/random_rows.h"
#include "quant/round_trip.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

class Rounded : public ::testing::TestWithParam<TensorType> {
 protected:
  // The weights that count, block by block; ones where all is next to zero.
  static Floats WeightsOf(const Floats& x, const Floats& importance) {
    Floats w(x.size(), 1);
    WithBlockType(GetParam(), [&]<typename Block>() {
      constexpr std::size_t kElems = Block::kElems;
      for (std::size_t at = 0; at < x.size(); at += kElems) {
        const auto block = internal::NormalizedBlock<kElems>::From(
            std::span(x).subspan(at, kElems), importance.empty()
                                                  ? std::span<const float>()
                                                  : std::span(importance).subspan(at, kElems));
        if (block) std::ranges::copy(block->Group(0, kElems).w, w.begin() + at);
      }
    });
    return w;
  }

  static double ErrorOf(Rounding rounding, const Floats& x, const Floats& importance) {
    return SquaredError(x, RoundTrip(GetParam(), x, importance, rounding),
                        WeightsOf(x, importance));
  }

  Rng rng_{TestSeed()};
};

std::vector<TensorType> BlockTypes() {
  std::vector<TensorType> types;
  for (const TensorType type : AllTypes()) {
    if (Info(type).block_elems > 1) types.push_back(type);
  }
  return types;
}
INSTANTIATE_TEST_SUITE_P(Types, Rounded, ::testing::ValuesIn(BlockTypes()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST_P(Rounded, BestIsNeverWorseThanPlainInAnyRow) {
  for (int round = 0; round < 200; ++round) {
    const double size = std::exp2(rng_.Uniform() * 40 - 30);
    Floats x = round % 2 == 0 ? NormalValues(256, size, rng_) : HeavyTailedValues(256, size, rng_);
    if (round % 5 == 0) {  // few values, many zeros
      for (float& v : x) v = rng_.Uniform() < 0.9 ? 0 : v;
    }
    for (float& v : x) v = std::clamp(v, -kMaxQuantizable, kMaxQuantizable);
    Floats importance;
    if (round % 3 == 0) {
      importance.resize(x.size());
      for (float& v : importance) v = static_cast<float>(std::exp(2 * rng_.Normal()));
    }
    const double plain = ErrorOf(Rounding::kPlain, x, importance);
    // Sums of the same terms in different order; nothing else may tell them apart.
    EXPECT_LE(ErrorOf(Rounding::kBest, x, importance), plain * (1 + 1e-12)) << "round " << round;
  }
}

TEST_P(Rounded, BestLosesLessOverManyRows) {
  const Floats x = NormalValues(256 * 64, 0.02, rng_);
  const double plain = ErrorOf(Rounding::kPlain, x, {}), best = ErrorOf(Rounding::kBest, x, {});
  if (GetParam() == TensorType::kQ8_0) {
    EXPECT_EQ(best, plain);
  } else {
    EXPECT_LT(best, 0.95 * plain);
  }
}

TEST_P(Rounded, EveryRoundingKeepsZerosAndExtremesFinite) {
  for (const Rounding rounding : {Rounding::kPlain, Rounding::kBest, Rounding::kReference}) {
    for (const float size : {0.0f, kMaxQuantizable, 6e-5f, 1e-7f, 3e-8f, 1e-45f}) {
      Floats x(512, size);
      for (std::size_t i = 0; i < x.size(); i += 3) x[i] = -size;
      for (std::size_t i = 1; i < x.size(); i += 7) x[i] = 0;
      for (const float v : RoundTrip(GetParam(), x, {}, rounding)) {
        ASSERT_TRUE(std::isfinite(v));
        ASSERT_LE(std::fabs(v), 1.5f * size + 127 * 0x1p-25f) << size;
      }
    }
  }
}

TEST_P(Rounded, PlainIgnoresTheImportance) {
  const Floats x = NormalValues(256, 1, rng_);
  Floats importance(256, 1);
  importance[3] = 1000;
  EXPECT_EQ(Quantize(GetParam(), x, importance, Rounding::kPlain),
            Quantize(GetParam(), x, {}, Rounding::kPlain));
}

TEST_P(Rounded, RefusesWhatIsNoNumber) {
  Floats x(256, 1);
  x[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(CheckQuantizable(x, "row").ok());
  EXPECT_DEATH(Quantize(GetParam(), x, {}, Rounding::kBest), "kMaxQuantizable");
}

}  // namespace
}  // namespace troupe
