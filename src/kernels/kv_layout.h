// How one layer's keys and values of some consecutive positions, a page, lie in memory, and how
// they get there: per kv head all keys, then all values. model/kv_pool.h allocates the pages and
// knows which sequence has which.
//
// Keys lie in tiles of 16 positions with the positions adjacent: element [dim][position]. A score
// then is a chain of fma down the dimensions with 16 keys across the SIMD lanes: no horizontal sum,
// the same bits on every target, and as fast for one query as for many. Values lie one row a
// position, rounded up to 16 elements (the sum over positions wants them so). kQ8_0 stores int8
// with one half as scale per 32 dimensions: in keys 16 scales, then [32][16] int8; in values the 16
// bits of the scale, then 32 int8. Half times int8 is exact in float: what is stored is a float.
//
// Multi-head latent attention stores one row a position, whose leading v_dim elements are the
// value: values_in_keys, and no values of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

enum class KvType { kF16, kQ8_0 };

std::string_view Name(KvType type);  // "f16", "q8_0"

struct KvLayout {
  static constexpr std::size_t kTile = 16;        // positions in a tile of keys
  static constexpr std::size_t kQuantGroup = 32;  // dimensions that share a scale

  KvType type = KvType::kF16;
  std::uint32_t kv_heads = 0;
  std::uint32_t k_dim = 0;
  std::uint32_t v_dim = 0;
  bool values_in_keys = false;  // the value is the first v_dim elements of the key
  std::size_t capacity = 0;     // positions of a page; a multiple of kTile

  // Ok if dimensions and capacity fit the type: kQ8_0 needs multiples of 32, values in keys
  // multiples of 16.
  Status Check() const;

  // Per head: 16 positions of keys; one position of values; all keys; all values.
  std::size_t KeyTileBytes() const;
  std::size_t ValueRowBytes() const;
  std::size_t KeyBytes() const { return capacity / kTile * KeyTileBytes(); }
  std::size_t ValueBytes() const { return capacity * ValueRowBytes(); }

  // Of a whole page.
  Bytes TotalBytes() const { return Bytes(kv_heads * (KeyBytes() + ValueBytes())); }

  // Where head `head` has the tile that holds `position` (any in it), and the row of `position`.
  std::size_t KeyTileOffset(std::size_t head, std::size_t position) const;
  std::size_t ValueRowOffset(std::size_t head, std::size_t position) const;
};

// Stores `tokens` rows of one head at positions first, first + 1, ...; row t begins at
// rows + t * stride. Halves round to nearest even and saturate at 65504; NaN stays NaN in kF16 and
// makes its group of 32 arbitrary in kQ8_0. Calls for different heads or positions may run at the
// same time. `page` is aligned to 64 bytes and needs no initial value.
void StoreKeys(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t first,
               std::size_t tokens, const float* rows, std::size_t stride);
// Nothing to do, and not to be called, if values_in_keys.
void StoreValues(const KvLayout& layout, std::byte* page, std::size_t head, std::size_t first,
                 std::size_t tokens, const float* rows, std::size_t stride);

// The floats that are stored, for tests and tools: k_dim and v_dim of them.
void LoadKey(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t position,
             float* row);
void LoadValue(const KvLayout& layout, const std::byte* page, std::size_t head,
               std::size_t position, float* row);

}  // namespace troupe
