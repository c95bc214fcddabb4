// Packs rows into panels, a record of 16 blocks at a time, and rows back. See panel.h.
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

// The codes of kRows rows (16 to pack a panel, 1 to unpack a row), 4 adjacent ones of each row at a
// time. Both the file and a panel keep all fields of 4 adjacent codes in one 32-bit word; packing
// moves them from word to word, the same for all rows, in loops that the compiler vectorizes.
template <std::size_t kRows>
using Words = std::array<std::uint32_t, kRows>;

constexpr std::uint32_t Repeat(std::uint32_t byte) { return byte * 0x01010101u; }

// Where a plane keeps the fields of chunk (4 adjacent codes) number `chunk`.
struct Place {
  std::size_t word;
  unsigned shift;
};

// The place in BitPlane<Bits, Stride>, for any Stride from 4 on.
template <unsigned Bits, std::size_t Stride>
constexpr Place PlaceOf(std::size_t chunk) {
  const std::size_t run = chunk / (Stride / 4);
  return {run / (8 / Bits) * (Stride / 4) + chunk % (Stride / 4),
          static_cast<unsigned>(run % (8 / Bits)) * Bits};
}

template <std::size_t kRows>
void MoveFields(const Words<kRows>& from, unsigned from_shift, std::uint32_t mask, Words<kRows>& to,
                unsigned to_shift) {
  for (std::size_t row = 0; row < kRows; ++row) {
    to[row] |= ((from[row] >> from_shift) & mask) << to_shift;
  }
}

// Converts between 32 bits in the order of their elements, as Q5_0 and Q5_1 store them, and a word
// with the bits of element 4 j + i in byte i: copies shifted by 7 leave one bit in each byte.
template <std::size_t kRows>
void SpreadBits(const Words<kRows>& bits, Words<kRows>& word) {
  for (unsigned chunk = 0; chunk < kGroupChunks; ++chunk) {
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::uint32_t four = (bits[row] >> (4 * chunk)) & 15;
      word[row] |= ((four | four << 7 | four << 14 | four << 21) & Repeat(1)) << chunk;
    }
  }
}
void GatherBits(const Words<1>& word, Words<1>& bits) {
  for (unsigned chunk = 0; chunk < kGroupChunks; ++chunk) {
    const std::uint32_t four = (word[0] >> chunk) & Repeat(1);
    bits[0] |= ((four | four >> 7 | four >> 14 | four >> 21) & 15) << (4 * chunk);
  }
}

// The panel's form of the fields that the file stores in BitPlane<Bits, Stride>.
template <typename Block, typename Plane>
struct PanelPlane;
template <typename Block, int Bits, std::size_t Stride, int Shift>
struct PanelPlane<Block, BitPlane<Bits, Stride, Shift>> {
  static constexpr std::size_t kWords = Bits;  // in a group, and the first of them:
  static constexpr std::size_t kFirst =
      Bits == 4 || Shift == 0 ? 0 : PanelLayout<Block>::kBits - Bits;

  static constexpr Place InFile(std::size_t chunk) { return PlaceOf<Bits, Stride>(chunk); }
  static constexpr Place InGroup(std::size_t chunk) {
    return PlaceOf < Bits, Bits == 4 ? 16 : 4 > (chunk);
  }

  template <std::size_t kRows>
  static void Pack(const Words<kRows>* file, std::size_t group, Words<kRows> (&words)[kWords]) {
    if constexpr (Stride == 1) {
      SpreadBits(file[group], words[0]);
    } else {
      for (std::size_t chunk = 0; chunk < kGroupChunks; ++chunk) {
        const Place from = InFile(group * kGroupChunks + chunk), to = InGroup(chunk);
        MoveFields(file[from.word], from.shift, Repeat((1u << Bits) - 1), words[to.word], to.shift);
      }
    }
  }
  static void Unpack(const Words<1> (&words)[kWords], std::size_t group, Words<1>* file) {
    if constexpr (Stride == 1) {
      GatherBits(words[0], file[group]);
    } else {
      for (std::size_t chunk = 0; chunk < kGroupChunks; ++chunk) {
        const Place from = InGroup(chunk), to = InFile(group * kGroupChunks + chunk);
        MoveFields(words[from.word], from.shift, Repeat((1u << Bits) - 1), file[to.word], to.shift);
      }
    }
  }
};

// Q8_0 has whole bytes. Flipping the top bit makes signed codes unsigned, with an offset of 128.
template <typename Block>
struct BytePlane {
  static constexpr std::size_t kWords = kGroupChunks;
  static constexpr std::size_t kFirst = 0;

  template <std::size_t kRows>
  static void Pack(const Words<kRows>* file, std::size_t, Words<kRows> (&words)[kWords]) {
    for (std::size_t i = 0; i < kWords; ++i) {
      for (std::size_t row = 0; row < kRows; ++row) words[i][row] = file[i][row] ^ Repeat(0x80);
    }
  }
  static void Unpack(const Words<1> (&words)[kWords], std::size_t, Words<1>* file) {
    for (std::size_t i = 0; i < kWords; ++i) file[i][0] = words[i][0] ^ Repeat(0x80);
  }
};

// Calls f(plane, bytes) for the planes of a block's codes.
template <typename Block, typename F>
void ForEachPanelPlane(Block& b, F&& f) {
  if constexpr (Block::kType == TensorType::kQ8_0) {
    f(BytePlane<Block>(), b.qs);
  } else {
    ForEachPlane(b,
                 [&f](auto plane, auto& bytes) { f(PanelPlane<Block, decltype(plane)>(), bytes); });
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

// Codes of a type with a code book: each byte of the places for all rows, then the words of signs.
template <typename Block>
void PackBookCodes(const std::array<Block, kPanelRows>& blocks, std::byte* codes) {
  using Layout = PanelLayout<Block>;
  constexpr bool kHasSigns = Layout::kSigns != Layout::kGroupBytes;
  for (std::size_t g = 0; g < Layout::kGroups; ++g, codes += Layout::kGroupBytes) {
    Words<kPanelRows> signs{}, spread{};
    for (std::size_t row = 0; row < kPanelRows; ++row) {
      const BookGroup<Block> group = ReadGroup(blocks[row], g);
      for (std::size_t i = 0; i < group.places.size(); ++i) {
        codes[i * kPanelRows + row] = std::byte{group.places[i]};
      }
      if constexpr (kHasSigns) std::memcpy(&signs[row], group.signs.data(), 4);
    }
    if constexpr (kHasSigns) {
      SpreadBits(signs, spread);
      std::memcpy(codes + Layout::kSigns, spread.data(), sizeof spread);
    }
  }
}

template <typename Block>
void UnpackBookCodes(const std::byte* codes, std::size_t row, Block& b) {
  using Layout = PanelLayout<Block>;
  for (std::size_t g = 0; g < Layout::kGroups; ++g, codes += Layout::kGroupBytes) {
    BookGroup<Block> group;
    for (std::size_t i = 0; i < group.places.size(); ++i) {
      group.places[i] = std::to_integer<std::uint8_t>(codes[i * kPanelRows + row]);
    }
    if constexpr (Layout::kSigns != Layout::kGroupBytes) {
      Words<1> spread, signs{};
      std::memcpy(&spread, codes + Layout::kSigns + row * 4, sizeof spread);
      GatherBits(spread, signs);
      std::memcpy(group.signs.data(), &signs, sizeof signs);
    }
    WriteGroup(group, g, b);
  }
}

// Transposes 16 blocks: each field of the rows becomes adjacent, so that a kernel loads it as one
// vector. Codes are gathered as words first, and their bits moved for all rows at once.
template <typename Block>
void PackRecord(const std::array<Block, kPanelRows>& blocks, std::byte* record) {
  using Layout = PanelLayout<Block>;
  for (std::size_t row = 0; row < kPanelRows; ++row) {
    const Block& b = blocks[row];
    if constexpr (kDBytes<Block> != 0) {
      std::memcpy(record + Layout::kD + row * sizeof b.d, &b.d, sizeof b.d);
    }
    if constexpr (Block::kHasMin) std::memcpy(record + Layout::kMin + row * 2, &MinOf(b), 2);
    if constexpr (kScaleBytes<Block> != 0) {
      for (std::size_t i = 0; i < kScaleBytes<Block>; ++i) {
        std::memcpy(record + Layout::kScales + i * kPanelRows + row, &b.scales[i], 1);
      }
    }
  }
  if constexpr (kHasBook<Block>) {
    PackBookCodes(blocks, record + Layout::kCodes);
  } else {
    ForEachPanelPlane(blocks[0], [&](auto plane, const auto& bytes) {
      using Plane = decltype(plane);
      constexpr std::size_t kFileWords = sizeof bytes / 4;
      const std::size_t offset = reinterpret_cast<const std::byte*>(&bytes) -
                                 reinterpret_cast<const std::byte*>(&blocks[0]);
      Words<kPanelRows> file[kFileWords];
      for (std::size_t row = 0; row < kPanelRows; ++row) {
        const std::byte* from = reinterpret_cast<const std::byte*>(&blocks[row]) + offset;
        for (std::size_t i = 0; i < kFileWords; ++i) std::memcpy(&file[i][row], from + 4 * i, 4);
      }
      for (std::size_t g = 0; g < Layout::kGroups; ++g) {
        Words<kPanelRows> words[Plane::kWords] = {};
        Plane::Pack(file, g, words);
        std::memcpy(record + Layout::kCodes + g * Layout::kGroupBytes + Plane::kFirst * kWordsBytes,
                    words, sizeof words);
      }
    });
  }
}

template <typename Block>
void UnpackBlock(const std::byte* record, std::size_t row, Block& b) {
  using Layout = PanelLayout<Block>;
  if constexpr (kDBytes<Block> != 0) {
    std::memcpy(&b.d, record + Layout::kD + row * sizeof b.d, sizeof b.d);
  }
  if constexpr (Block::kHasMin) std::memcpy(&MinOf(b), record + Layout::kMin + row * 2, 2);
  if constexpr (kScaleBytes<Block> != 0) {
    for (std::size_t i = 0; i < kScaleBytes<Block>; ++i) {
      std::memcpy(&b.scales[i], record + Layout::kScales + i * kPanelRows + row, 1);
    }
  }
  if constexpr (kHasBook<Block>) {
    UnpackBookCodes(record + Layout::kCodes, row, b);
  } else {
    ForEachPanelPlane(b, [&](auto plane, auto& bytes) {
      using Plane = decltype(plane);
      Words<1> file[sizeof bytes / 4] = {};
      for (std::size_t g = 0; g < Layout::kGroups; ++g) {
        const std::byte* from = record + Layout::kCodes + g * Layout::kGroupBytes +
                                Plane::kFirst * kWordsBytes + row * 4;
        Words<1> words[Plane::kWords];
        for (std::size_t i = 0; i < Plane::kWords; ++i) {
          std::memcpy(&words[i], from + i * kWordsBytes, 4);
        }
        Plane::Unpack(words, g, file);
      }
      std::memcpy(&bytes, file, sizeof bytes);
    });
  }
}

template <typename Block>
void PackBlockPanel(const std::byte* source, std::size_t rows, std::size_t cols, std::byte* panel) {
  const std::size_t row_blocks = cols / Block::kElems;
  std::array<Block, kPanelRows> blocks{};  // zero where there is no row
  for (std::size_t i = 0; i < row_blocks; ++i) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(&blocks[row], source + (row * row_blocks + i) * sizeof(Block), sizeof(Block));
    }
    PackRecord(blocks, panel + i * PanelLayout<Block>::kRecordBytes);
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
