// Weights as the matrix kernels read them: panels of 16 rows, made once from GGUF's rows when a
// matrix is loaded and of exactly their size. Lane r of a vector always belongs to row r of its
// panel, so a product with a vector needs no sums across lanes and no shuffles.
//
// A matrix [rows x cols] has ceil(rows / 16) panels one after the other; rows missing in the last
// one are zero. A panel is as long as 16 rows of the type:
//
//   F32 F16 BF16   for each column the numbers of the 16 rows
//   block types    for each block of columns (32, 64 or 256) one record, in which every field of
//                  the 16 rows' blocks lies together: d, then m or dmin, then each byte of the
//                  scales (16 rows x byte 0, 16 rows x byte 1, ...), then the codes
//   codes          for each 32 columns a group of 64 bytes a bit: the group of one row is coded in
//                  as many 32-bit words as a code has bits, and word i of the 16 rows lies
//                  together. 4 columns of a row form a chunk, 8 chunks a group. The words of a row
//                  hold
//     8 bits       chunk i in word i
//     4 bits       chunk i in the low nibbles of word i, chunk i + 4 in the high ones
//     2 bits       chunk 4 i + j in bits 2 j and 2 j + 1 of the bytes of word i
//     1 bit        chunk j in bit j of the bytes of the word
//     6, 5, 3      the low 4 (or 2) bits as above, then the remaining upper 2 (or 1) bits
//   code books     for each 32 columns a BookGroup of each row (quant/book_codes.h): each byte of
//                  the places (16 rows x byte 0, 16 rows x byte 1, ...), then, but in IQ1, a word
//                  of signs, its bits as those of codes of 1 bit
//
// Codes are unsigned (a row's quant plus the type's offset, or a place in the type's table of
// levels), scales stay as the file has them.
// Constants for kernels: panel_layout.h. Why all this: docs/design/panels.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/tensor_type.h"

namespace troupe {

inline constexpr std::size_t kPanelRows = 16;

// Version of the layout described above. Panels are also stored in files, and a program with
// another layout cannot use those.
inline constexpr std::uint32_t kPanelLayoutVersion = 1;

// A view of a packed matrix. `data` should be aligned to 64 bytes for speed; nothing needs it.
struct PanelMatrix {
  TensorType type = TensorType::kF32;
  std::size_t rows = 0;
  std::size_t cols = 0;
  const std::byte* data = nullptr;
  // A number that every product with it is multiplied with; null: none. Rows that are unpacked are
  // without it.
  const float* factor = nullptr;

  std::size_t Panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  // Bytes from one panel to the next.
  std::size_t PanelStride() const { return kPanelRows * RowBytes(type, cols).count(); }
  const std::byte* Panel(std::size_t panel) const { return data + panel * PanelStride(); }
};

// Bytes of a whole packed matrix: those of its rows, plus the zero rows of the last panel.
std::size_t PanelBytes(TensorType type, std::size_t rows, std::size_t cols);

// Packs rows, RowBytes(type, cols) apart, into ceil(rows / 16) panels. The rows of a matrix may be
// packed in parts, of a multiple of 16 rows each except the last, in any order and in parallel.
// `source` and `panels` are exactly the bytes of the rows and of the panels, and do not overlap.
void PackPanels(TensorType type, std::size_t rows, std::size_t cols,
                std::span<const std::byte> source, std::span<std::byte> panels);

// The bytes of one row as the file had them: what embedding look-ups and exports read, and the
// proof that packing loses nothing. `row_bytes` is exactly RowBytes(type, cols) long.
void UnpackRow(const PanelMatrix& matrix, std::size_t row, std::span<std::byte> row_bytes);

// The same row as numbers (dequantize.h).
void UnpackRow(const PanelMatrix& matrix, std::size_t row, std::span<float> values);

}  // namespace troupe
