// Where the parts of a panel record lie, for the code that packs and the kernels that read. The
// layout itself is described in panel.h.
#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>

#include "quant/block_formats.h"
#include "quant/book_codes.h"
#include "quant/panel.h"

namespace troupe {

inline constexpr std::size_t kGroupCols = 32;  // columns that a kernel processes at a time
inline constexpr std::size_t kChunkCols = 4;   // columns that lie in one 32-bit word
inline constexpr std::size_t kGroupChunks = kGroupCols / kChunkCols;
inline constexpr std::size_t kWordsBytes = kPanelRows * 4;  // one word of each row

// Bytes of packed scales in a block: none in the 32-element types.
template <typename Block>
inline constexpr std::size_t kScaleBytes = 0;
template <typename Block>
requires requires(Block b) { b.scales; }
inline constexpr std::size_t kScaleBytes<Block> = sizeof(Block::scales);

// Columns that share one scale.
template <typename Block>
inline constexpr std::size_t kScaleCols = Block::kElems;
template <typename Block>
requires(Block::kGroups > 0) inline constexpr std::size_t kScaleCols<Block> = Block::kGroupElems;

// Bytes of d in a block: none in IQ1_M, whose d is part of the scales, and in NVFP4.
template <typename Block>
inline constexpr std::size_t kDBytes = 0;
template <typename Block>
requires requires(Block b) { b.d; }
inline constexpr std::size_t kDBytes<Block> = sizeof(Block::d);

// Bytes of a row in a group of 32 columns.
template <typename Block>
inline constexpr std::size_t kRowGroupBytes = std::bit_width(unsigned{Block::kMaxCode}) * 4;
template <typename Block>
requires kHasBook<Block>
inline constexpr std::size_t kRowGroupBytes<Block> =
    BookPlaces<Block>::kBytes + (SignsOf<Block>() == SignForm::kShift ? 0 : 4);

template <typename Block>
struct PanelLayout {
  static constexpr std::size_t kBits = std::bit_width(unsigned{Block::kMaxCode});
  static constexpr std::size_t kGroups = Block::kElems / kGroupCols;  // in one record

  // Byte offsets in a record.
  static constexpr std::size_t kD = 0;
  static constexpr std::size_t kMin =
      kD + kPanelRows * kDBytes<Block>;  // m or dmin, where the type has one
  static constexpr std::size_t kScales = kMin + (Block::kHasMin ? kPanelRows * 2 : 0);
  static constexpr std::size_t kCodes = kScales + kPanelRows * kScaleBytes<Block>;
  static constexpr std::size_t kGroupBytes = kRowGroupBytes<Block> * kPanelRows;
  // In a group of a type with a code book: the words of signs, after the bytes of places.
  static constexpr std::size_t kSigns = [] {
    if constexpr (kHasBook<Block>) return BookPlaces<Block>::kBytes * kPanelRows;
    return std::size_t{0};
  }();
  static constexpr std::size_t kRecordBytes = kCodes + kGroups * kGroupBytes;
  static_assert(kRecordBytes == kPanelRows * sizeof(Block), "a panel is as long as its rows");
};

}  // namespace troupe
