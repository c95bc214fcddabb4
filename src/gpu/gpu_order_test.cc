#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "gpu/expert.h"
#include "gpu/recording_gpu_for_test.h"
#include "quant/activations.h"
#include "quant/panel.h"

namespace troupe {
namespace {

constexpr TensorType kType = TensorType::kQ8_0;
constexpr std::uint32_t kWidth = 64, kFf = 32, kRows = 3;

// Of what waits for what, and of what is refused: no driver is asked.
class GpuOrder : public testing::Test {
 protected:
  GpuOrder() {
    const Bytes panels(2 * PanelBytes(kType, kFf, kWidth) + PanelBytes(kType, kWidth, kFf));
    slot_ = gpu.Allocate(panels).value();
    expert.gate = {kType, kFf, kWidth, slot_.get(), 0};
    expert.up = {kType, kFf, kWidth, slot_.get(), PanelBytes(kType, kFf, kWidth)};
    expert.down = {kType, kWidth, kFf, slot_.get(), 2 * PanelBytes(kType, kFf, kWidth)};
  }

  Result<GpuEventPtr> Run(std::span<const GpuEventPtr> after) {
    return mlp.Run(expert, std::span(rows).first(1), std::span(out).first(kWidth), after);
  }

  RecordingGpu gpu;
  GpuKernels kernels = GpuKernels::Build(gpu, {&kType, 1}).value();
  GpuExpertMlp mlp =
      GpuExpertMlp::Create(kernels, {.width = kWidth, .ff = kFf, .rows = kRows}).value();
  GpuMlp expert;
  std::vector<float> x = std::vector<float>(kRows * kWidth), out = x;
  std::array<std::uint32_t, kRows> rows = {0, 1, 2};

 private:
  std::unique_ptr<GpuBuffer> slot_;
};

TEST_F(GpuOrder, AnExpertBeginsOnceItsCopyAndItsRowsAreThereAndFailsWithThem) {
  const GpuEventPtr set = mlp.SetRows(x).value();
  const auto slot = gpu.Allocate(1_KiB).value();
  const GpuEventPtr copy = gpu.CopyIn(GpuLane::kDemand, {}, *slot, Bytes(0), {}).value();
  for (int i = 0; i < 2; ++i) {  // the second one, too: the first may have failed by itself
    const std::size_t first = gpu.works.size();
    const GpuEventPtr last = Run({&copy, 1}).value();
    ASSERT_EQ(gpu.works.size(), first + 7);
    EXPECT_TRUE(gpu.works[first].WaitsFor(copy));
    EXPECT_TRUE(gpu.works[first].WaitsFor(set));
    for (std::size_t j = first + 1; j < gpu.works.size(); ++j) {
      EXPECT_TRUE(gpu.works[j].WaitsFor(gpu.works[j - 1].done)) << gpu.works[j].what;
    }
    EXPECT_EQ(last, gpu.works.back().done);
  }
}

TEST_F(GpuOrder, RowsAreConvertedAfterTheirCopy) {
  const GpuEventPtr set = mlp.SetRows(x).value();
  ASSERT_EQ(gpu.works.size(), 2u);
  EXPECT_EQ(gpu.works[0].what, "in");
  EXPECT_EQ(gpu.works[1].what, "Quantize");
  EXPECT_TRUE(gpu.works[1].WaitsFor(gpu.works[0].done));
  EXPECT_EQ(set, gpu.works[1].done);
}

TEST_F(GpuOrder, RowsThatWereRefusedAreThereForNoExpert) {
  ASSERT_TRUE(mlp.SetRows(x).ok());
  for (const int taken : {0, 1}) {
    gpu.refuse_after = static_cast<int>(gpu.works.size()) + taken;
    EXPECT_EQ(mlp.SetRows(x).status().code(), Code::kUnavailable);
    EXPECT_DEATH((void)Run({}), "row < count_");
    gpu.refuse_after = -1;
    ASSERT_TRUE(mlp.SetRows(x).ok());
    EXPECT_TRUE(Run({}).ok());
  }
}

TEST(GpuExpertMemory, IsWhatItSays) {
  // Three rows: 64 wide as floats, once more as floats, and in 8 bits; the same 96 wide; a list.
  const std::uint64_t floats = 3 * 64 * 4 * 2 + 3 * 96 * 4 * 2, groups = 3 * 48 * (2 + 3);
  EXPECT_EQ(GpuExpertMlp::BytesFor({.width = 64, .ff = 96, .rows = 3}),
            Bytes(floats + groups + 3 * 4));
}

// Products of two rows, and what each buffer must hold at least.
class GpuChecks : public testing::Test {
 protected:
  GpuChecks() {
    weights = Buffer(PanelBytes(kType, kFf, kWidth));
    float_weights = Buffer(PanelBytes(TensorType::kF32, kFf, kWidth));
    values = Buffer(2 * kWidth * 4);
    groups = Buffer(ActivationBytes(2, kWidth));
    two_rows = Buffer(2 * 4);
    out = Buffer(2 * kFf * 4);
    bias = Buffer((3 + kFf) * 4);
  }

  std::unique_ptr<GpuBuffer> Buffer(std::uint64_t bytes) {
    return gpu.Allocate(Bytes(bytes)).value();
  }
  std::unique_ptr<GpuBuffer> ShorterThan(const std::unique_ptr<GpuBuffer>& buffer) {
    return Buffer(buffer->size().count() - 1);
  }
  bool Multiplies(TensorType type = kType, std::uint32_t count = 2, std::uint64_t bias_at = 3) {
    const GpuMatrix w{type, kFf, kWidth, type == kType ? weights.get() : float_weights.get(), 0};
    const GpuRows x{values.get(), groups.get(), 2, kWidth};
    return kernels.Multiply(w, {bias.get(), bias_at}, x, two_rows.get(), count, *out, {}).ok();
  }

  static constexpr TensorType kTypes[] = {kType, TensorType::kF32};
  RecordingGpu gpu;
  GpuKernels kernels = GpuKernels::Build(gpu, kTypes).value();
  std::unique_ptr<GpuBuffer> weights, float_weights, values, groups, two_rows, out, bias;
};

TEST_F(GpuChecks, PassBuffersThatAreJustLargeEnough) {
  EXPECT_TRUE(Multiplies());
  EXPECT_TRUE(Multiplies(TensorType::kF32));
  two_rows = nullptr;
  bias = nullptr;
  EXPECT_TRUE(Multiplies());
  EXPECT_TRUE(kernels.Quantize({values.get(), groups.get(), 2, kWidth}, {}).ok());
}

TEST_F(GpuChecks, StopAProductThatWouldReadOrWriteBeyondABuffer) {
  for (std::unique_ptr<GpuBuffer>* const buffer : {&weights, &groups, &two_rows, &out, &bias}) {
    auto shorter = ShorterThan(*buffer);
    buffer->swap(shorter);
    EXPECT_DEATH((void)Multiplies(), "size|bias");
    buffer->swap(shorter);
  }
  EXPECT_DEATH((void)Multiplies(kType, 2, 4), "bias");
  EXPECT_DEATH((void)Multiplies(kType, 2, ~std::uint64_t{0}), "bias");
  values = ShorterThan(values);
  EXPECT_TRUE(Multiplies());  // which reads their 8-bit form
  EXPECT_DEATH((void)Multiplies(TensorType::kF32), "size");
}

TEST_F(GpuChecks, StopAProductOfMoreRowsThanThereAre) {
  two_rows = nullptr;
  out = Buffer(3 * kFf * 4);
  EXPECT_DEATH((void)Multiplies(kType, 3), "count <= x.count");
}

TEST_F(GpuChecks, StopAConversionThatWouldReadOrWriteBeyondABuffer) {
  EXPECT_DEATH((void)kernels.Quantize({nullptr, groups.get(), 2, kWidth}, {}), "values");
  EXPECT_DEATH((void)kernels.Quantize({ShorterThan(values).get(), groups.get(), 2, kWidth}, {}),
               "values");
  EXPECT_DEATH((void)kernels.Quantize({values.get(), ShorterThan(groups).get(), 2, kWidth}, {}),
               "groups");
}

}  // namespace
}  // namespace troupe
