#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "kernels/quantize_activations.h"
#include "kernels/target.h"
#include "quant/book_codes.h"
#include "quant/panel_reference.h"
#include "quant/random_rows.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// A matrix in the file's form and packed.
struct Weights {
  Weights(TensorType type, std::size_t rows, std::size_t cols, Rng& rng)
      : native(RandomRows(type, rows, cols, rng)), packed(PanelBytes(type, rows, cols)) {
    PackPanels(type, rows, cols, native, packed);
    matrix = {type, rows, cols, packed.data()};
  }
  std::span<const std::byte> Row(std::size_t row) const {
    const std::size_t bytes = RowBytes(matrix.type, matrix.cols).count();
    return std::span(native).subspan(row * bytes, bytes);
  }
  std::vector<std::byte> native, packed;
  PanelMatrix matrix;
};

struct Tokens {
  Tokens(std::size_t tokens, std::size_t cols, Rng& rng)
      : values(tokens * cols), storage(cols % kGroupCols == 0 ? ActivationBytes(tokens, cols) : 0) {
    for (float& v : values) v = static_cast<float>(rng.Normal());
    x = MakeActivations(values.data(), cols, tokens, cols, storage);
    if (x.groups == nullptr) return;
    for (std::size_t t = 0; t < tokens; ++t) QuantizeActivationsReference(x, t);
  }
  std::vector<float> values;
  std::vector<std::byte> storage;
  Activations x;
};

std::vector<std::uint32_t> Bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size() * sizeof(float));
  return bits;
}

constexpr float kUntouched = -12345.0f;

class MatMul : public ::testing::TestWithParam<TensorType> {
 protected:
  std::size_t Columns(std::size_t at_least) const {
    const std::size_t block = Info(GetParam()).block_elems;
    return (at_least + block - 1) / block * block;
  }
  void TearDown() override { ForceTarget(std::nullopt); }
  Rng rng_{TestSeed()};
};

INSTANTIATE_TEST_SUITE_P(Types, MatMul, ::testing::ValuesIn(AllTypes()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST_P(MatMul, EqualsTheReferenceBitForBitOnEveryTargetForAnyRowsColumnsAndTokens) {
  struct Shape {
    std::size_t rows, cols, tokens;
  };
  const Shape shapes[] = {{1, 1, 1},   {16, 32, 1},  {17, 64, 2},   {32, 256, 3},
                          {48, 96, 5}, {50, 288, 8}, {33, 512, 13}, {64, 333, 67}};
  for (const Shape& shape : shapes) {
    const std::size_t cols = Columns(shape.cols), rows = shape.rows, tokens = shape.tokens;
    const Weights w(GetParam(), rows, cols, rng_);
    const Tokens t(tokens, cols, rng_);
    const std::size_t stride = rows + 5;
    std::vector<float> expected(tokens * stride, kUntouched);
    for (std::size_t i = 0; i < tokens; ++i) {
      for (std::size_t row = 0; row < rows; ++row) {
        expected[i * stride + row] = PanelDotReference(GetParam(), w.Row(row), t.x, i);
      }
    }
    for (const Target target : SupportedTargets()) {
      ForceTarget(target);
      std::vector<float> out(expected.size(), kUntouched);
      MatMulPanels(w.matrix, 0, w.matrix.Panels(), t.x, {}, out.data(), stride);
      ASSERT_EQ(Bits(out), Bits(expected))
          << Name(target) << ": " << rows << " x " << cols << ", " << tokens << " tokens";
    }
  }
}

TEST_P(MatMul, GivesTheSameForEachPanelAloneAndEachTokenAlone) {
  const std::size_t rows = 75, cols = Columns(256), tokens = 11;
  const Weights w(GetParam(), rows, cols, rng_);
  const Tokens t(tokens, cols, rng_);
  for (const Target target : SupportedTargets()) {
    ForceTarget(target);
    std::vector<float> whole(tokens * rows), parts(tokens * rows);
    MatMulPanels(w.matrix, 0, w.matrix.Panels(), t.x, {}, whole.data(), rows);
    for (std::uint32_t token = 0; token < tokens; ++token) {
      for (std::size_t panel = 0; panel < w.matrix.Panels(); ++panel) {
        MatMulPanels(w.matrix, panel, 1, t.x, {&token, 1}, parts.data() + token * rows, rows);
      }
    }
    ASSERT_EQ(Bits(parts), Bits(whole)) << Name(target);
  }
}

TEST_P(MatMul, MultipliesProductsWithAMatrixsFactor) {
  const std::size_t rows = 50, cols = Columns(96), tokens = 3;
  const Weights w(GetParam(), rows, cols, rng_);
  const Tokens t(tokens, cols, rng_);
  const float factor = 0.3f;
  PanelMatrix with_factor = w.matrix;
  with_factor.factor = &factor;
  for (const Target target : SupportedTargets()) {
    ForceTarget(target);
    std::vector<float> plain(tokens * rows), out(tokens * rows);
    MatMulPanels(w.matrix, 0, w.matrix.Panels(), t.x, {}, plain.data(), rows);
    MatMulPanels(with_factor, 0, w.matrix.Panels(), t.x, {}, out.data(), rows);
    for (float& v : plain) v *= factor;
    ASSERT_EQ(Bits(out), Bits(plain)) << Name(target);
  }
}

TEST_P(MatMul, TakesTheTokensItIsToldInTheirOrder) {
  const std::size_t rows = 20, cols = Columns(64), tokens = 100;
  const Weights w(GetParam(), rows, cols, rng_);
  const Tokens t(tokens, cols, rng_);
  std::vector<float> all(tokens * rows);
  MatMulPanels(w.matrix, 0, 2, t.x, {}, all.data(), rows);
  std::vector<std::uint32_t> chosen(70);
  for (std::uint32_t& token : chosen) token = static_cast<std::uint32_t>(rng_.Below(tokens));
  std::vector<float> out(chosen.size() * rows);
  MatMulPanels(w.matrix, 0, 2, t.x, chosen, out.data(), rows);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    ASSERT_EQ(std::memcmp(&out[i * rows], &all[chosen[i] * rows], rows * sizeof(float)), 0) << i;
  }
}

TEST_P(MatMul, DoesNotDependOnTheAlignmentOfItsMemory) {
  const std::size_t rows = 40, cols = Columns(96), tokens = 3;
  const Weights w(GetParam(), rows, cols, rng_);
  const Tokens t(tokens, cols, rng_);
  std::vector<float> aligned(tokens * rows);
  MatMulPanels(w.matrix, 0, 3, t.x, {}, aligned.data(), rows);
  std::vector<std::byte> bytes(w.packed.size() + 64);
  for (std::size_t shift : {1u, 2u, 32u, 63u}) {
    std::copy(w.packed.begin(), w.packed.end(), bytes.begin() + static_cast<std::ptrdiff_t>(shift));
    const PanelMatrix shifted{GetParam(), rows, cols, bytes.data() + shift};
    for (const Target target : SupportedTargets()) {
      ForceTarget(target);
      std::vector<float> out(tokens * rows + 1);
      MatMulPanels(shifted, 0, 3, t.x, {}, out.data() + 1, rows);
      ASSERT_EQ(std::memcmp(&out[1], aligned.data(), tokens * rows * sizeof(float)), 0)
          << Name(target) << ", shifted by " << shift;
    }
  }
}

TEST_P(MatMul, GateUpIsTheExpressionOfItsProductsInEachFormWithAndWithoutBiases) {
  const std::size_t rows = 57, cols = Columns(128), tokens = 66;
  Weights gate(GetParam(), rows, cols, rng_), up(GetParam(), rows, cols, rng_);
  const float gate_factor = 0.7f, up_factor = 1.3f;
  const Tokens t(tokens, cols, rng_);
  std::vector<std::uint32_t> reversed(tokens);
  for (std::uint32_t i = 0; i < tokens; ++i)
    reversed[i] = static_cast<std::uint32_t>(tokens) - 1 - i;
  std::vector<float> gate_bias(rows), up_bias(rows);  // so large that both limits cut some off
  for (float& b : gate_bias) b = static_cast<float>(5 * rng_.Normal());
  for (float& b : up_bias) b = static_cast<float>(5 * rng_.Normal());
  for (const GateForm form : kGateForms) {
    for (const bool biased : {false, true}) {
      gate.matrix.factor = biased ? &gate_factor : nullptr;
      up.matrix.factor = biased ? &up_factor : nullptr;
      GateUpWeights w{.gate = gate.matrix, .up = up.matrix, .form = form};
      if (biased) w.gate_bias = gate_bias.data(), w.up_bias = up_bias.data();
      if (!TakesUp(form)) w.up = {}, w.up_bias = nullptr;
      for (const Target target : SupportedTargets()) {
        ForceTarget(target);
        std::vector<float> g(tokens * rows), u(tokens * rows);
        MatMulPanels(gate.matrix, 0, 4, t.x, reversed, g.data(), rows);
        MatMulPanels(up.matrix, 0, 4, t.x, reversed, u.data(), rows);
        for (std::size_t i = 0; i < g.size(); ++i) {
          if (biased) g[i] += gate_bias[i % rows], u[i] += up_bias[i % rows];
          g[i] = GateReference(form, g[i], u[i]);
        }
        std::vector<float> out(tokens * rows, kUntouched);
        GateUp(w, 0, 1, t.x, reversed, out.data(), rows);
        GateUp(w, 1, 3, t.x, reversed, out.data(), rows);
        ASSERT_EQ(Bits(out), Bits(g)) << Name(target) << (biased ? ", biased" : "");
      }
    }
  }
}

TEST(GateReference, CutsTheGateOffAboveAndUpOnBothSidesAndKeepsNan) {
  const auto clamped = [](float gate, float up) {
    return GateReference(GateForm::kClamped, gate, up);
  };
  EXPECT_EQ(clamped(9, 2), clamped(7, 2));
  EXPECT_NE(clamped(-9, 2), clamped(-7, 2));
  EXPECT_EQ(clamped(1, 9), clamped(1, 7));
  EXPECT_EQ(clamped(1, -9), clamped(1, -7));
  EXPECT_NEAR(clamped(1, 2), 3 / (1 + std::exp(-1.702)), 1e-6);
  EXPECT_TRUE(std::isnan(clamped(std::nanf(""), 1)));
  EXPECT_TRUE(std::isnan(clamped(1, std::nanf(""))));
}

TEST(GateReference, TakesWhatIsAboveZeroAndKeepsNanWhereOneProductIsAll) {
  const auto relu = [](float gate) { return GateReference(GateForm::kRelu, gate, 7); };
  const auto squared = [](float gate) { return GateReference(GateForm::kSquaredRelu, gate, 7); };
  EXPECT_EQ(relu(3), 3);
  EXPECT_EQ(squared(3), 9);
  EXPECT_EQ(relu(-3), 0);
  EXPECT_EQ(squared(-3), 0);
  EXPECT_TRUE(std::isnan(relu(std::nanf(""))));
  EXPECT_TRUE(std::isnan(squared(std::nanf(""))));
}

TEST_P(MatMul, GivesNanForATokenThatHoldsOneAndForNoOther) {
  const std::size_t rows = 20, cols = Columns(256), tokens = 9;
  const Weights w(GetParam(), rows, cols, rng_);
  Tokens t(tokens, cols, rng_);
  t.values[4 * cols + 77] = std::nanf("");
  QuantizeActivations(t.x, 4, 1);
  for (const Target target : SupportedTargets()) {
    ForceTarget(target);
    std::vector<float> out(tokens * rows);
    MatMulPanels(w.matrix, 0, 2, t.x, {}, out.data(), rows);
    for (std::size_t i = 0; i < out.size(); ++i) {
      ASSERT_EQ(std::isnan(out[i]), i / rows == 4) << Name(target) << ", token " << i / rows;
    }
  }
}

// The largest codes against the largest activations of one sign: what overflows if anything does.
TEST_P(MatMul, IsExactAtTheExtremesOfItsIntegers) {
  const std::size_t cols = Columns(256), rows = 16, tokens = 15;  // tiles of 8, 4, 2 and 1
  if (Info(GetParam()).block_elems == 1) GTEST_SKIP() << "no integers";
  for (const int byte : {0x00, 0x7f, 0x80, 0xff}) {
    for (const float sign : {1.0f, -1.0f}) {
      Weights w(GetParam(), rows, cols, rng_);
      WithBlockType(GetParam(), [&]<typename Block>() {
        for (std::size_t i = 0; i < w.native.size(); i += sizeof(Block)) {
          Block b;
          std::memset(&b, byte, sizeof b);
          if constexpr (kHasBook<Block>) {
            SetHalf(0x3c00, b);
          } else if constexpr (kHasFloatScales<Block>) {
            std::memset(b.scales, 0x38, sizeof b.scales);
          } else {
            b.d = sizeof b.d == 1 ? 127 : 0x3c00;  // 1
          }
          if constexpr (requires { b.m; }) b.m = 0xbc00;
          if constexpr (requires { b.dmin; }) b.dmin = 0x3c00;
          std::memcpy(w.native.data() + i, &b, sizeof b);
        }
      });
      PackPanels(GetParam(), rows, cols, w.native, w.packed);
      Tokens t(tokens, cols, rng_);
      std::fill(t.values.begin(), t.values.end(), sign);
      for (std::size_t i = 0; i < tokens; ++i) QuantizeActivationsReference(t.x, i);
      const float expected = PanelDotReference(GetParam(), w.Row(0), t.x, 0);
      for (const Target target : SupportedTargets()) {
        ForceTarget(target);
        std::vector<float> out(tokens * rows);
        MatMulPanels(w.matrix, 0, 1, t.x, {}, out.data(), rows);
        ASSERT_EQ(out, std::vector<float>(tokens * rows, expected))
            << Name(target) << ", byte " << byte;
      }
    }
  }
}

}  // namespace
}  // namespace troupe
