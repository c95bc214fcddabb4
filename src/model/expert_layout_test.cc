#include "model/expert_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

TensorInfo Tensor(TensorType type, std::uint64_t cols, std::uint64_t rows, std::uint64_t experts) {
  TensorInfo tensor;
  static_cast<TensorSpec&>(tensor) = TensorSpec("x.weight", type, {cols, rows, experts});
  tensor.bytes = SizeOfTensor(tensor).value();
  return tensor;
}

std::vector<std::byte> RandomBytes(std::uint64_t count, Rng& rng) {
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.Next());
  return bytes;
}

std::vector<std::byte> RowOf(const PanelMatrix& matrix, std::size_t row) {
  std::vector<std::byte> bytes(RowBytes(matrix.type, matrix.cols).count());
  UnpackRow(matrix, row, std::span<std::byte>(bytes));
  return bytes;
}

// Q4_0 panels of 96 columns are 864 bytes, no multiple of 64; 40 rows leave a panel half empty.
class ExpertLayoutTest : public ::testing::Test {
 protected:
  ExpertLayoutTest() {
    Rng rng(TestSeed());
    for (std::size_t m = 0; m < 3; ++m) {
      source_[m] = RandomBytes(layout_.matrices[m].SourceBytes(), rng);
      rows_[m] = source_[m];
    }
  }

  const TensorInfo gate_ = Tensor(TensorType::kQ4_0, 96, 40, 4);
  const TensorInfo up_ = Tensor(TensorType::kQ8_0, 96, 40, 4);
  const TensorInfo down_ = Tensor(TensorType::kF16, 40, 96, 4);
  const ExpertLayout layout_ = ExpertLayout::For(gate_, up_, down_);
  std::array<std::vector<std::byte>, 3> source_;
  std::array<std::span<const std::byte>, 3> rows_;
};

TEST_F(ExpertLayoutTest, MatricesFollowEachOtherOnCacheLines) {
  const auto& [gate, up, down] = layout_.matrices;
  EXPECT_EQ(gate.tensor, &gate_);
  EXPECT_EQ(gate.slot_offset, 0u);
  EXPECT_EQ(gate.SlotBytes(), 3u * 864);
  EXPECT_EQ(up.slot_offset, 2624u);  // 2592, rounded up to 64
  EXPECT_EQ(up.SlotBytes(), 48u * 3 * 34);
  EXPECT_EQ(down.slot_offset, 2624u + 4928);
  EXPECT_EQ(layout_.SlotBytes(), down.slot_offset + 96 * 80);
}

TEST_F(ExpertLayoutTest, SourceIsOneExpertsShareOfTheThreeTensors) {
  EXPECT_EQ(layout_.SourceBytes(), (gate_.bytes + up_.bytes + down_.bytes).count() / 4);
}

TEST_F(ExpertLayoutTest, EveryRowThatIsPackedIsFoundInTheViews) {
  std::vector<std::byte> slot(layout_.SlotBytes());
  layout_.Pack(rows_, slot);
  const Mlp mlp = layout_.At(slot.data());
  const std::array<PanelMatrix, 3> views = {mlp.gate, mlp.up, mlp.down};
  for (std::size_t m = 0; m < 3; ++m) {
    EXPECT_EQ(views[m].rows, layout_.matrices[m].rows);
    const std::size_t row_bytes = RowBytes(views[m].type, views[m].cols).count();
    for (std::size_t r = 0; r < views[m].rows; ++r) {
      const auto expected = rows_[m].subspan(r * row_bytes, row_bytes);
      EXPECT_TRUE(std::ranges::equal(RowOf(views[m], r), expected)) << m << ", row " << r;
    }
  }
}

TEST_F(ExpertLayoutTest, APackedSlotDoesNotDependOnWhatWasInItAndEndsWhereItShould) {
  std::vector<std::byte> clean(layout_.SlotBytes() + 100), used(clean.size(), std::byte{0xee});
  layout_.Pack(rows_, clean);
  layout_.Pack(rows_, used);
  const std::size_t size = layout_.SlotBytes();
  EXPECT_TRUE(
      std::equal(clean.begin(), clean.begin() + static_cast<std::ptrdiff_t>(size), used.begin()));
  for (std::size_t i = size; i < used.size(); ++i) ASSERT_EQ(used[i], std::byte{0xee});
}

TEST_F(ExpertLayoutTest, AGateAndAnUpMatrixMayBeHalvesOfOneTensor) {
  const TensorInfo both = Tensor(TensorType::kQ4_0, 96, 80, 4);
  const ExpertLayout fused = ExpertLayout::For(both, both, down_);
  const auto& [gate, up, down] = fused.matrices;
  EXPECT_EQ(gate.rows, 40u);
  EXPECT_EQ(up.rows, 40u);
  EXPECT_EQ(gate.FirstRow(3), 3 * 80u);
  EXPECT_EQ(up.FirstRow(3), 3 * 80 + 40u);
  EXPECT_EQ(down.FirstRow(3), 3 * 96u);
  EXPECT_EQ(fused.SourceBytes(),
            layout_.In({TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kF16}).SourceBytes());
}

TEST_F(ExpertLayoutTest, WithoutUpTheOtherTwoFollowEachOther) {
  const ExpertLayout layout = ExpertLayout::WithoutUp(gate_, down_);
  EXPECT_FALSE(layout.TakesUp());
  EXPECT_EQ(layout.SourceBytes(), (gate_.bytes + down_.bytes).count() / 4);
  EXPECT_EQ(layout.matrices[0].FirstRow(3), 3 * 40u);
  EXPECT_EQ(layout.matrices[2].slot_offset, 2624u);
  std::vector<std::byte> slot(layout.SlotBytes());
  layout.Pack(std::array<std::span<const std::byte>, 3>{rows_[0], {}, rows_[2]}, slot);
  const Mlp mlp = layout.At(slot.data());
  EXPECT_EQ(mlp.form, GateForm::kSquaredRelu);
  EXPECT_EQ(mlp.up.rows, 0u);
  EXPECT_TRUE(std::ranges::equal(RowOf(mlp.gate, 39), rows_[0].subspan(39 * 54, 54)));
  EXPECT_TRUE(std::ranges::equal(RowOf(mlp.down, 95), rows_[2].subspan(95 * 80, 80)));
  std::vector<std::byte> copy(slot.size(), std::byte{1});
  layout.CopySlot(mlp, 0, copy);
  EXPECT_EQ(copy, slot);
}

TEST_F(ExpertLayoutTest, TheSameMatricesInOtherTypesArePlacedAnew) {
  const ExpertLayout low = layout_.In({TensorType::kQ4_0, TensorType::kQ4_0, TensorType::kF16});
  EXPECT_EQ(low.matrices[1].tensor, &up_);
  EXPECT_EQ(low.matrices[1].type, TensorType::kQ4_0);
  EXPECT_EQ(low.matrices[1].slot_offset, 2624u);
  EXPECT_EQ(low.matrices[2].slot_offset, 2u * 2624);
  EXPECT_LT(low.SlotBytes(), layout_.SlotBytes());
}

TEST(ExpertLayout, OfALayerWithoutExpertsTakesNothing) {
  EXPECT_EQ(ExpertLayout().SlotBytes(), 0u);
  EXPECT_EQ(ExpertLayout().SourceBytes(), 0u);
}

TEST_F(ExpertLayoutTest, AShortSlotIsABug) {
  std::vector<std::byte> slot(layout_.SlotBytes() - 1);
  EXPECT_DEATH(layout_.Pack(rows_, slot), "slot");
}

}  // namespace
}  // namespace troupe
