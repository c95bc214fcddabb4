// Packs rows into panels and back, one group of 32 codes of one row at a time. See panel.h.
#include "quant/panel.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "quant/bit_plane.h"
#include "quant/block_codes.h"
#include "quant/block_formats.h"
#include "quant/dequantize.h"
#include "quant/panel_layout.h"

namespace troupe {
namespace {

using GroupCodes = std::span<std::uint8_t, kGroupCols>;
using ConstGroupCodes = std::span<const std::uint8_t, kGroupCols>;

// The words of one row's group, a row of kBits words: calls f(plane, bytes) for the planes in them.
template <std::size_t Bits, typename Words, typename F>
void ForEachWordPlane(Words& words, F&& f) {
  auto* bytes = reinterpret_cast<
      std::conditional_t<std::is_const_v<Words>, const std::uint8_t, std::uint8_t>*>(words.data());
  const auto part = [bytes]<std::size_t kBegin, std::size_t kBytes>() -> auto& {
    using Byte = std::remove_reference_t<decltype(*bytes)>;
    return *reinterpret_cast<Byte(*)[kBytes]>(bytes + kBegin);
  };
  if constexpr (Bits == 2 || Bits == 3) {
    f(BitPlane<2, 4>(), part.template operator()<0, 8>());
    if constexpr (Bits == 3) f(BitPlane<1, 4, 2>(), part.template operator()<8, 4>());
  } else {
    f(BitPlane<4, 16>(), part.template operator()<0, 16>());
    if constexpr (Bits == 5) f(BitPlane<1, 4, 4>(), part.template operator()<16, 4>());
    if constexpr (Bits == 6) f(BitPlane<2, 4, 4>(), part.template operator()<16, 8>());
  }
}

template <std::size_t Bits>
std::array<std::uint32_t, Bits> WordsOfCodes(ConstGroupCodes codes) {
  std::array<std::uint32_t, Bits> words;
  if constexpr (Bits == 8) {
    std::memcpy(words.data(), codes.data(), sizeof words);
  } else {
    ForEachWordPlane<Bits>(words, [&](auto plane, auto& bytes) { plane.Pack(codes, bytes); });
  }
  return words;
}

template <std::size_t Bits>
void CodesOfWords(const std::array<std::uint32_t, Bits>& words, GroupCodes codes) {
  if constexpr (Bits == 8) {
    std::memcpy(codes.data(), words.data(), sizeof words);
  } else {
    ForEachWordPlane<Bits>(words, [&](auto plane, auto& bytes) { plane.Unpack(bytes, codes); });
  }
}

// m or dmin, whichever the block has.
template <typename Block>
auto& MinOf(Block& b) {
  if constexpr (requires { b.m; }) {
    return b.m;
  } else {
    return b.dmin;
  }
}

template <typename Block>
void PackBlock(const Block& b, std::size_t row, std::byte* record) {
  using Layout = PanelLayout<Block>;
  std::memcpy(record + Layout::kD + row * 2, &b.d, 2);
  if constexpr (Block::kHasMin) std::memcpy(record + Layout::kMin + row * 2, &MinOf(b), 2);
  if constexpr (kScaleBytes<Block> != 0) {
    for (std::size_t i = 0; i < kScaleBytes<Block>; ++i) {
      std::memcpy(record + Layout::kScales + i * kPanelRows + row, &b.scales[i], 1);
    }
  }
  const Codes<Block> codes = UnpackCodes(b);
  for (std::size_t g = 0; g < Layout::kGroups; ++g) {
    const auto words =
        WordsOfCodes<Layout::kBits>(ConstGroupCodes(codes.data() + g * kGroupCols, kGroupCols));
    std::byte* group = record + Layout::kCodes + g * Layout::kGroupBytes;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::memcpy(group + i * kWordsBytes + row * 4, &words[i], 4);
    }
  }
}

template <typename Block>
void UnpackBlock(const std::byte* record, std::size_t row, Block& b) {
  using Layout = PanelLayout<Block>;
  std::memcpy(&b.d, record + Layout::kD + row * 2, 2);
  if constexpr (Block::kHasMin) std::memcpy(&MinOf(b), record + Layout::kMin + row * 2, 2);
  if constexpr (kScaleBytes<Block> != 0) {
    for (std::size_t i = 0; i < kScaleBytes<Block>; ++i) {
      std::memcpy(&b.scales[i], record + Layout::kScales + i * kPanelRows + row, 1);
    }
  }
  Codes<Block> codes{};
  for (std::size_t g = 0; g < Layout::kGroups; ++g) {
    const std::byte* group = record + Layout::kCodes + g * Layout::kGroupBytes;
    std::array<std::uint32_t, Layout::kBits> words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::memcpy(&words[i], group + i * kWordsBytes + row * 4, 4);
    }
    CodesOfWords<Layout::kBits>(words, GroupCodes(codes.data() + g * kGroupCols, kGroupCols));
  }
  PackCodes(codes, b);
}

template <typename Block>
void PackBlockPanel(const std::byte* source, std::size_t rows, std::size_t cols, std::byte* panel) {
  const std::size_t blocks = cols / Block::kElems;
  for (std::size_t i = 0; i < blocks; ++i) {
    std::byte* record = panel + i * PanelLayout<Block>::kRecordBytes;
    for (std::size_t row = 0; row < kPanelRows; ++row) {
      Block b{};
      if (row < rows) std::memcpy(&b, source + (row * blocks + i) * sizeof(Block), sizeof(Block));
      PackBlock(b, row, record);
    }
  }
}

template <typename Block>
void UnpackBlockRow(const std::byte* panel, std::size_t row, std::span<std::byte> row_bytes) {
  for (std::size_t i = 0; i < row_bytes.size() / sizeof(Block); ++i) {
    Block b;
    UnpackBlock(panel + i * PanelLayout<Block>::kRecordBytes, row, b);
    std::memcpy(row_bytes.data() + i * sizeof(Block), &b, sizeof(Block));
  }
}

template <typename Word>
void PackNumberPanel(const std::byte* source, std::size_t rows, std::size_t cols,
                     std::byte* panel) {
  for (std::size_t col = 0; col < cols; ++col) {
    Word words[kPanelRows] = {};
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(&words[row], source + (row * cols + col) * sizeof(Word), sizeof(Word));
    }
    std::memcpy(panel + col * sizeof words, words, sizeof words);
  }
}

template <typename Word>
void UnpackNumberRow(const std::byte* panel, std::size_t row, std::span<std::byte> row_bytes) {
  for (std::size_t i = 0; i < row_bytes.size(); i += sizeof(Word)) {
    std::memcpy(row_bytes.data() + i, panel + i * kPanelRows + row * sizeof(Word), sizeof(Word));
  }
}

void PackPanel(TensorType type, std::size_t rows, std::size_t cols, const std::byte* source,
               std::byte* panel) {
  if (WithBlockType(type,
                    [&]<typename Block>() { PackBlockPanel<Block>(source, rows, cols, panel); })) {
    return;
  }
  if (type == TensorType::kF32) return PackNumberPanel<std::uint32_t>(source, rows, cols, panel);
  PackNumberPanel<std::uint16_t>(source, rows, cols, panel);
}

}  // namespace

std::size_t PanelBytes(TensorType type, std::size_t rows, std::size_t cols) {
  const PanelMatrix matrix{type, rows, cols};
  return matrix.Panels() * matrix.PanelStride();
}

void PackPanels(TensorType type, std::size_t rows, std::size_t cols,
                std::span<const std::byte> source, std::span<std::byte> panels) {
  const std::size_t row_bytes = RowBytes(type, cols).count();
  TROUPE_CHECK(source.size() == rows * row_bytes);
  TROUPE_CHECK(panels.size() == PanelBytes(type, rows, cols));
  for (std::size_t row = 0; row < rows; row += kPanelRows) {
    PackPanel(type, std::min(kPanelRows, rows - row), cols, source.data() + row * row_bytes,
              panels.data() + row * row_bytes);
  }
}

void UnpackRow(const PanelMatrix& matrix, std::size_t row, std::span<std::byte> row_bytes) {
  TROUPE_CHECK(row < matrix.rows);
  TROUPE_CHECK(row_bytes.size() == RowBytes(matrix.type, matrix.cols).count());
  const std::byte* panel = matrix.Panel(row / kPanelRows);
  const std::size_t lane = row % kPanelRows;
  if (WithBlockType(matrix.type,
                    [&]<typename Block>() { UnpackBlockRow<Block>(panel, lane, row_bytes); })) {
    return;
  }
  if (matrix.type == TensorType::kF32) {
    return UnpackNumberRow<std::uint32_t>(panel, lane, row_bytes);
  }
  UnpackNumberRow<std::uint16_t>(panel, lane, row_bytes);
}

void UnpackRow(const PanelMatrix& matrix, std::size_t row, std::span<float> values) {
  std::vector<std::byte> row_bytes(RowBytes(matrix.type, matrix.cols).count());
  UnpackRow(matrix, row, row_bytes);
  DequantizeRow(matrix.type, row_bytes, values);
}

}  // namespace troupe
