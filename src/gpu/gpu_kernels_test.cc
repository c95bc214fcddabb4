#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "gpu/device_copies.h"
#include "gpu/gpu_for_test.h"
#include "gpu/kernels.h"
#include "quant/activations.h"
#include "quant/panel.h"
#include "quant/panel_reference.h"
#include "quant/random_rows.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

// Rows of x on both sides; the device's 8-bit form is its own.
struct TestRows {
  TestRows(GpuKernels& kernels, std::uint32_t count, std::uint32_t cols, Rng& rng)
      : values(std::size_t{count} * cols),
        codes(cols % 32 == 0 ? ActivationBytes(count, cols) : 0) {
    for (float& value : values) value = static_cast<float>(rng.Normal());
    x = MakeActivations(values.data(), cols, count, cols, codes);
    device_values = BufferWith(kernels.device(), std::as_bytes(std::span(values))).value();
    if (codes.empty()) return;
    for (std::size_t row = 0; row < count; ++row) QuantizeActivationsReference(x, row);
    device_codes = kernels.device().Allocate(Bytes(codes.size())).value();
    EXPECT_TRUE(kernels.Quantize(rows(), {}).value()->Wait().ok());
  }
  GpuRows rows() const {
    return {device_values.get(), device_codes.get(), static_cast<std::uint32_t>(x.tokens),
            static_cast<std::uint32_t>(x.cols)};
  }

  std::vector<float> values;
  std::vector<std::byte> codes;
  Activations x;
  std::unique_ptr<GpuBuffer> device_values, device_codes;
};

struct ProductCase {
  std::uint32_t rows, cols, tokens;
  std::vector<std::uint32_t> chosen = {};  // empty: all
  bool bias = false;
  bool any_bytes = false;  // scales that are subnormal, infinite or no numbers
};

// What it takes for kernel and reference to agree on one product: EXPECTs.
void ExpectReference(GpuKernels& kernels, TensorType type, const ProductCase& c, Rng& rng) {
  GpuDevice& device = kernels.device();
  const TestRows x(kernels, c.tokens, c.cols, rng);
  std::vector<std::byte> stored = RandomRows(type, c.rows, c.cols, rng);
  if (c.any_bytes) {
    for (std::byte& byte : stored) byte = static_cast<std::byte>(rng.Next());
  }
  // Somewhere in a buffer, as in a slot.
  constexpr std::uint64_t kAt = 48;
  std::vector<std::byte> slot(kAt + PanelBytes(type, c.rows, c.cols));
  PackPanels(type, c.rows, c.cols, stored, std::span(slot).subspan(kAt));
  const auto weights = BufferWith(device, slot).value();
  std::vector<float> bias(c.rows + 3);
  for (float& number : bias) number = static_cast<float>(rng.Normal());
  const auto biases = BufferWith(device, std::as_bytes(std::span(bias))).value();

  std::vector<std::uint32_t> chosen = c.chosen;
  std::unique_ptr<GpuBuffer> list;
  if (chosen.empty()) {
    for (std::uint32_t i = 0; i < c.tokens; ++i) chosen.push_back(i);
  } else {
    list = BufferWith(device, std::as_bytes(std::span(chosen))).value();
  }
  const auto count = static_cast<std::uint32_t>(chosen.size());
  std::vector<float> got(chosen.size() * c.rows), right;
  const auto out = device.Allocate(Bytes(got.size() * sizeof(float))).value();
  const GpuMatrix matrix{type, c.rows, c.cols, weights.get(), kAt};
  const GpuVector with = c.bias ? GpuVector{biases.get(), 3} : GpuVector{};
  ASSERT_TRUE(
      kernels.Multiply(matrix, with, x.rows(), list.get(), count, *out, {}).value()->Wait().ok());
  ASSERT_TRUE(ReadNow(device, *out, std::as_writable_bytes(std::span(got))).ok());
  const std::size_t row_bytes = stored.size() / c.rows;
  for (const std::uint32_t token : chosen) {
    for (std::size_t row = 0; row < c.rows; ++row) {
      const auto bytes = std::span(stored).subspan(row * row_bytes, row_bytes);
      const float product = PanelDotReference(type, bytes, x.x, token);
      right.push_back(c.bias ? product + bias[3 + row] : product);
    }
  }
  EXPECT_EQ(BitsOf(got), BitsOf(right)) << Name(type) << " " << c.rows << " x " << c.cols;
}

class GpuProducts : public GpuTest, public testing::WithParamInterface<TensorType> {};

TEST_P(GpuProducts, HaveTheBitsOfTheReferenceForAnyShapeAndAnyRows) {
  const TensorType type = GetParam();
  GpuKernels kernels = GpuKernels::Build(device(), {&type, 1}).value();
  Rng rng(TestSeed());
  const std::uint32_t block = std::max<std::uint32_t>(1, Info(type).block_elems);
  const std::uint32_t least = block == 1 ? 7 : block;
  const ProductCase cases[] = {
      {.rows = 1, .cols = least, .tokens = 1},
      {.rows = 16, .cols = 256, .tokens = 1},
      {.rows = 17, .cols = 512, .tokens = 8, .bias = true},
      {.rows = 31, .cols = 17 * least, .tokens = 9},
      {.rows = 5, .cols = 33 * least, .tokens = 3, .chosen = {2}},
      {.rows = 48, .cols = 3 * least, .tokens = 21, .chosen = {20, 0, 3, 3, 19, 7, 8, 1, 2, 20}},
      {.rows = 40, .cols = 256, .tokens = 64, .bias = true},
  };
  for (const ProductCase& c : cases) ExpectReference(kernels, type, c, rng);
}

TEST_P(GpuProducts, HaveTheBitsOfTheReferenceForAnyBytesThatAFileMayHold) {
  const TensorType type = GetParam();
  GpuKernels kernels = GpuKernels::Build(device(), {&type, 1}).value();
  Rng rng(TestSeed());
  // Of few columns, so that not every sum ends as no number.
  const std::uint32_t cols = std::max<std::uint32_t>(32, Info(type).block_elems);
  for (int i = 0; i < 4; ++i) {
    ExpectReference(kernels, type, {.rows = 200, .cols = cols, .tokens = 2, .any_bytes = true},
                    rng);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, GpuProducts, testing::ValuesIn(AllTypes()),
                         [](const auto& type) { return std::string(Name(type.param)); });

class GpuArithmetic : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    const TensorType types[] = {TensorType::kQ8_0, TensorType::kF32};
    kernels_ = std::make_unique<GpuKernels>(GpuKernels::Build(device(), types).value());
  }
  GpuKernels& kernels() { return *kernels_; }

  // The codes of `values`, rows of 32.
  std::vector<std::byte> Quantized(std::span<const float> values) {
    const auto count = static_cast<std::uint32_t>(values.size() / 32);
    const auto in = BufferWith(device(), std::as_bytes(values)).value();
    std::vector<std::byte> codes(ActivationBytes(count, 32));
    const auto out = device().Allocate(Bytes(codes.size())).value();
    EXPECT_TRUE(kernels().Quantize({in.get(), out.get(), count, 32}, {}).value()->Wait().ok());
    EXPECT_TRUE(ReadNow(device(), *out, codes).ok());
    return codes;
  }

 private:
  std::unique_ptr<GpuKernels> kernels_;
};

TEST_F(GpuArithmetic, ActivationsInEightBitsAreTheReferences) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Rng rng(TestSeed());
  constexpr std::size_t kRows = 1000;
  std::vector<float> values(kRows * 32);
  for (std::size_t row = 0; row < kRows; ++row) {
    // Every exponent that a float has.
    const float size = std::ldexp(1.0f, static_cast<int>(row % 250) - 125);
    for (std::size_t i = 0; i < 32; ++i) {
      values[row * 32 + i] = size * static_cast<float>(rng.Normal());
    }
  }
  for (std::size_t i = 0; i < 32; ++i) values[i] = static_cast<float>(i) - 15.5f;
  values[5] = -127.0f;
  values[32] = kInfinity;
  values[64 + 31] = -kInfinity;
  values[96 + 3] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(values.begin() + 128, 32, -0.0f);
  std::vector<std::byte> right(ActivationBytes(kRows, 32));
  const Activations x = MakeActivations(values.data(), 32, kRows, 32, right);
  for (std::size_t row = 0; row < kRows; ++row) QuantizeActivationsReference(x, row);
  EXPECT_EQ(Quantized(values), right);
}

TEST_F(GpuArithmetic, GatesHaveTheBitsOfTheReferenceInEachForm) {
  Rng rng(TestSeed());
  std::vector<float> gates, ups;
  for (int i = 0; i < 20'000; ++i) {
    // From one end of e^x to the other, and any bits at all.
    gates.push_back(i % 4 == 0
                        ? std::bit_cast<float>(static_cast<std::uint32_t>(rng.Next()))
                        : static_cast<float>(i % 200) - 100.0f + static_cast<float>(rng.Normal()));
    ups.push_back(static_cast<float>(4 * rng.Normal()));
  }
  const auto count = static_cast<std::uint32_t>(gates.size());
  const auto device_ups = BufferWith(device(), std::as_bytes(std::span(ups))).value();
  for (const GateForm form : kGateForms) {
    const auto out = BufferWith(device(), std::as_bytes(std::span(gates))).value();
    ASSERT_TRUE(kernels().Combine(form, *out, *device_ups, count, {}).value()->Wait().ok());
    std::vector<float> got(gates.size()), right;
    ASSERT_TRUE(ReadNow(device(), *out, std::as_writable_bytes(std::span(got))).ok());
    for (std::size_t i = 0; i < gates.size(); ++i) {
      right.push_back(GateReference(form, gates[i], ups[i]));
    }
    EXPECT_EQ(BitsOf(got), BitsOf(right)) << static_cast<int>(form);
  }
}

TEST_F(GpuArithmetic, ANanInOneRowStaysInThatRow) {
  Rng rng(TestSeed());
  std::vector<float> values(3 * 64);
  for (float& value : values) value = static_cast<float>(rng.Normal());
  values[64 + 40] = std::numeric_limits<float>::quiet_NaN();
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kF32}) {
    const std::vector<std::byte> stored = RandomRows(type, 16, 64, rng);
    std::vector<std::byte> panels(PanelBytes(type, 16, 64));
    PackPanels(type, 16, 64, stored, panels);
    const auto weights = BufferWith(device(), panels).value();
    const auto x = BufferWith(device(), std::as_bytes(std::span(values))).value();
    const auto codes = device().Allocate(Bytes(ActivationBytes(3, 64))).value();
    const auto out = device().Allocate(Bytes(3 * 16 * sizeof(float))).value();
    const GpuRows rows{x.get(), codes.get(), 3, 64};
    ASSERT_TRUE(kernels().Quantize(rows, {}).ok());
    const GpuMatrix matrix{type, 16, 64, weights.get(), 0};
    ASSERT_TRUE(kernels().Multiply(matrix, {}, rows, nullptr, 3, *out, {}).value()->Wait().ok());
    std::vector<float> got(3 * 16);
    ASSERT_TRUE(ReadNow(device(), *out, std::as_writable_bytes(std::span(got))).ok());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i / 16 == 1) << i;
  }
}

}  // namespace
}  // namespace troupe
