#include "quant/panel.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "quant/block_codes.h"
#include "quant/dequantize.h"
#include "quant/panel_layout.h"
#include "quant/random_rows.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

std::vector<std::byte> RandomBytes(std::size_t n, Rng& rng) {
  std::vector<std::byte> bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng.Next());
  return bytes;
}

class PanelOfType : public ::testing::TestWithParam<TensorType> {
 protected:
  std::size_t Columns(std::size_t blocks) const { return blocks * Info(GetParam()).block_elems; }
  std::size_t Row(std::size_t cols) const { return RowBytes(GetParam(), cols).count(); }
  Rng rng_{TestSeed()};
};

INSTANTIATE_TEST_SUITE_P(Types, PanelOfType, ::testing::ValuesIn(AllTypes()),
                         [](const auto& test) { return std::string(Name(test.param)); });

TEST_P(PanelOfType, UnpacksEveryRowToTheBytesItWasPackedFrom) {
  for (std::size_t rows : {1u, 15u, 16u, 17u, 40u}) {
    const std::size_t cols = Columns(3);
    const auto source = RandomBytes(rows * Row(cols), rng_);
    std::vector<std::byte> panels(PanelBytes(GetParam(), rows, cols));
    PackPanels(GetParam(), rows, cols, source, panels);
    const PanelMatrix matrix{GetParam(), rows, cols, panels.data()};
    for (std::size_t row = 0; row < rows; ++row) {
      const auto expected = std::span(source).subspan(row * Row(cols), Row(cols));
      std::vector<std::byte> unpacked(Row(cols));
      UnpackRow(matrix, row, unpacked);
      ASSERT_EQ(std::memcmp(unpacked.data(), expected.data(), Row(cols)), 0) << row << "/" << rows;

      std::vector<float> values(cols), expected_values(cols);
      UnpackRow(matrix, row, values);
      DequantizeRow(GetParam(), expected, expected_values);
      ASSERT_EQ(std::memcmp(values.data(), expected_values.data(), cols * sizeof(float)), 0);
    }
  }
}

TEST_P(PanelOfType, TakesTheBytesOfItsRowsAndOfTheZeroRowsThatFillTheLastPanel) {
  const std::size_t cols = Columns(2);
  EXPECT_EQ(PanelBytes(GetParam(), 32, cols), 32 * Row(cols));
  EXPECT_EQ(PanelBytes(GetParam(), 33, cols), 48 * Row(cols));

  std::vector<std::byte> source(Row(cols), std::byte{0x55});
  std::vector<std::byte> panel(PanelBytes(GetParam(), 1, cols), std::byte{0xff});
  PackPanels(GetParam(), 1, cols, source, panel);
  const PanelMatrix filled{GetParam(), 16, cols, panel.data()};
  for (std::size_t row = 1; row < 16; ++row) {
    std::vector<float> values(cols, 1.0f);
    UnpackRow(filled, row, values);
    EXPECT_EQ(values, std::vector<float>(cols, 0.0f)) << row;
  }
}

TEST_P(PanelOfType, IsTheSameWhetherPackedWholeOrInParts) {
  const std::size_t rows = 60, cols = Columns(1);
  const auto source = RandomBytes(rows * Row(cols), rng_);
  std::vector<std::byte> whole(PanelBytes(GetParam(), rows, cols)), parts(whole.size());
  PackPanels(GetParam(), rows, cols, source, whole);
  for (std::size_t first : {32u, 0u}) {
    const std::size_t count = first == 0 ? 32 : rows - 32;
    PackPanels(GetParam(), count, cols,
               std::span(source).subspan(first * Row(cols), count * Row(cols)),
               std::span(parts).subspan(first * Row(cols), PanelBytes(GetParam(), count, cols)));
  }
  EXPECT_EQ(whole, parts);
}

// The description in panel.h, read literally: bit `bit` of the code of `row` at column `k`.
unsigned BitInPanel(const std::byte* group, std::size_t bits, std::size_t row, std::size_t k,
                    std::size_t bit) {
  const std::size_t chunk = k / 4;
  std::size_t word = 0, shift = 0;
  if (bits == 8) {
    word = chunk, shift = bit;
  } else if (bits >= 4 && bit < 4) {
    word = chunk % 4, shift = 4 * (chunk / 4) + bit;
  } else if ((bits < 4 && bit < 2) || bits == 6) {
    word = (bits == 6 ? 4 : 0) + chunk / 4, shift = 2 * (chunk % 4) + bit % 2;
  } else {
    word = bits - 1, shift = chunk;
  }
  return (static_cast<unsigned>(group[word * 64 + row * 4 + k % 4]) >> shift) & 1;
}

// The same of a type with a code book: the group of `row`, whose codes follow from it.
template <typename Block>
BookGroup<Block> GroupInPanel(const std::byte* group, std::size_t row) {
  BookGroup<Block> read;
  for (std::size_t i = 0; i < read.places.size(); ++i) {
    read.places[i] = static_cast<std::uint8_t>(group[16 * i + row]);
  }
  for (std::size_t k = 0; k < 8 * read.signs.size(); ++k) {  // element k: chunk k / 4
    const auto byte = static_cast<unsigned>(group[16 * read.places.size() + 4 * row + k % 4]);
    read.signs[k / 8] |= static_cast<std::uint8_t>((byte >> (k / 4) & 1) << (k % 8));
  }
  return read;
}

TEST_P(PanelOfType, LaysBlocksOutAsPanelHDescribes) {
  WithBlockType(GetParam(), [&]<typename Block>() {
    const std::size_t blocks = 2, cols = blocks * Block::kElems;
    const auto source = RandomBytes(16 * Row(cols), rng_);
    std::vector<std::byte> panel(source.size());
    PackPanels(GetParam(), 16, cols, source, panel);
    const std::size_t bits = PanelLayout<Block>::kBits;
    for (std::size_t i = 0; i < 16 * blocks; ++i) {
      const std::size_t row = i / blocks;
      const std::byte* record = panel.data() + (i % blocks) * 16 * sizeof(Block);
      Block b;
      std::memcpy(&b, source.data() + i * sizeof(Block), sizeof(Block));
      std::size_t head = 16 * kDBytes<Block>;
      if constexpr (kDBytes<Block> != 0) {
        EXPECT_EQ(std::memcmp(record + sizeof b.d * row, &b.d, sizeof b.d), 0);
      }
      const Codes<Block> codes = UnpackCodes(b);
      for (std::size_t k = 0; k < Block::kElems; ++k) {
        if constexpr (kHasBook<Block>) {
          if (k % 32 != 0) continue;
          const std::size_t bytes = kRowGroupBytes<Block> * 16;
          const std::byte* group = record + 16 * sizeof(Block) - (Block::kElems - k) / 32 * bytes;
          const BookGroup<Block> here = GroupInPanel<Block>(group, row);
          ASSERT_EQ(here.places, ReadGroup(b, k / 32).places) << "row " << row << ", column " << k;
          ASSERT_EQ(here.signs, ReadGroup(b, k / 32).signs) << "row " << row << ", column " << k;
          continue;
        }
        const std::byte* group =
            record + 16 * sizeof(Block) - (Block::kElems - k / 32 * 32) / 32 * 64 * bits;
        unsigned code = 0;
        for (std::size_t bit = 0; bit < bits; ++bit) {
          code |= BitInPanel(group, bits, row, k % 32, bit) << bit;
        }
        ASSERT_EQ(code, codes[k]) << "row " << row << ", column " << k;
      }
      if constexpr (kScaleBytes<Block> != 0) {
        if (Block::kHasMin) head += 32;
        for (std::size_t s = 0; s < kScaleBytes<Block>; ++s) {
          ASSERT_EQ(std::memcmp(record + head + 16 * s + row, &b.scales[s], 1), 0);
        }
      }
    }
  });
}

TEST(PanelOfNumbers, HoldsTheSixteenRowsOfEachColumnTogether) {
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};  // 2 rows of 3
  std::vector<float> panel(48, 9.0f);
  PackPanels(TensorType::kF32, 2, 3, std::as_bytes(std::span(source)),
             std::as_writable_bytes(std::span(panel)));
  for (std::size_t col = 0; col < 3; ++col) {
    EXPECT_EQ(panel[16 * col], source[col]);
    EXPECT_EQ(panel[16 * col + 1], source[3 + col]);
    EXPECT_EQ(panel[16 * col + 2], 0.0f);
  }
}

}  // namespace
}  // namespace troupe
