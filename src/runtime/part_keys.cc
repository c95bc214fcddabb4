#include "runtime/part_keys.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::size_t kTile = KvLayout::kTile, kGroup = KvLayout::kQuantGroup;
constexpr std::size_t kHalf = sizeof(std::uint16_t);

bool IsFinite(const std::byte* from) {
  constexpr std::uint16_t kExponent = 0x7c00;
  std::uint16_t half;
  std::memcpy(&half, from, sizeof half);
  return (half & kExponent) != kExponent;
}

bool AreFinite(const std::byte* from, std::size_t halves) {
  for (std::size_t i = 0; i < halves; ++i) {
    if (!IsFinite(from + i * kHalf)) return false;
  }
  return true;
}

bool KeyTileIsFinite(const KvLayout& layout, const std::byte* tile) {
  if (layout.type == KvType::kF16) return AreFinite(tile, kTile * layout.k_dim);
  for (std::size_t group = 0; group < layout.k_dim / kGroup; ++group) {
    if (!AreFinite(tile + group * kTile * (kHalf + kGroup), kTile)) return false;
  }
  return true;
}

bool ValueRowIsFinite(const KvLayout& layout, const std::byte* row) {
  if (layout.type == KvType::kF16) return AreFinite(row, layout.v_dim);
  for (std::size_t group = 0; group < layout.v_dim / kGroup; ++group) {
    if (!IsFinite(row + group * (kHalf + kGroup))) return false;
  }
  return true;
}

// What lies behind a value's last number is nobody's, and says what was there before.
void ClearBehindValue(const KvLayout& layout, std::byte* row) {
  if (layout.type != KvType::kF16) return;
  const std::size_t used = layout.v_dim * kHalf;
  std::memset(row + used, 0, layout.ValueRowBytes() - used);
}

std::size_t TileBytes(const KvLayout& layout) {
  return layout.kv_heads * (layout.KeyTileBytes() + kTile * layout.ValueRowBytes());
}

// Each piece that is in one place in a page: visit(its layout, where, bytes, whether it is keys).
template <typename Visit>
void ForPieces(const KvPool& pool, const KvSequence& sequence, const KeysRange& range,
               const Visit& visit) {
  const std::size_t page_positions = pool.page_positions();
  for (std::uint32_t layer = range.layers.first; layer < range.layers.end; ++layer) {
    const KvLayout& layout = pool.LayoutOf(layer);
    for (std::size_t at = range.first; at < range.first + range.positions; at += kTile) {
      std::byte* const page = sequence.PageOf(layer, at);
      const std::size_t in_page = at % page_positions;
      for (std::uint32_t head = 0; head < layout.kv_heads; ++head) {
        visit(layout, page + layout.KeyTileOffset(head, in_page), layout.KeyTileBytes(), true);
        if (layout.ValueRowBytes() == 0) continue;
        visit(layout, page + layout.ValueRowOffset(head, in_page), kTile * layout.ValueRowBytes(),
              false);
      }
    }
  }
}

std::vector<std::byte> CopyOut(const KvPool& pool, const KvSequence& sequence,
                               const KeysRange& range) {
  std::vector<std::byte> bytes(KeysBytes(pool, range));
  std::byte* out = bytes.data();
  ForPieces(pool, sequence, range,
            [&out](const KvLayout& layout, const std::byte* from, std::size_t size, bool is_keys) {
              std::memcpy(out, from, size);
              for (std::size_t row = 0; !is_keys && row < kTile; ++row) {
                ClearBehindValue(layout, out + row * layout.ValueRowBytes());
              }
              out += size;
            });
  return bytes;
}

}  // namespace

std::size_t KeysBytes(const KvLayout& layout) { return TileBytes(layout) / kTile; }

std::size_t KeysBytes(const KvPool& pool, const KeysRange& range) {
  std::size_t bytes = 0;
  for (std::uint32_t layer = range.layers.first; layer < range.layers.end; ++layer) {
    bytes += range.positions / kTile * TileBytes(pool.LayoutOf(layer));
  }
  return bytes;
}

std::vector<KeysPart> CopyKeys(const KvPool& pool, const KvSequence& sequence,
                               const KeysRange& range, std::size_t most_bytes) {
  TROUPE_CHECK(range.first % kTile == 0 && range.positions % kTile == 0);
  TROUPE_CHECK(range.first + range.positions <= sequence.length());
  std::vector<KeysPart> parts;
  for (std::uint32_t layer = range.layers.first; layer < range.layers.end;) {
    KeysRange next = range;
    next.layers = {layer, layer + 1};
    while (next.layers.end < range.layers.end) {
      KeysRange longer = next;
      ++longer.layers.end;
      if (KeysBytes(pool, longer) > most_bytes) break;
      next = longer;
    }
    parts.push_back({.range = next, .bytes = CopyOut(pool, sequence, next)});
    layer = next.layers.end;
  }
  return parts;
}

Status CheckKeys(const KvPool& pool, const KeysRange& range, std::span<const std::byte> bytes) {
  if (bytes.size() != KeysBytes(pool, range)) {
    return InvalidArgument("keys: {} bytes of layers {} to {}, {} expected", bytes.size(),
                           range.layers.first, range.layers.end, KeysBytes(pool, range));
  }
  const std::byte* in = bytes.data();
  for (std::uint32_t layer = range.layers.first; layer < range.layers.end; ++layer) {
    const KvLayout& layout = pool.LayoutOf(layer);
    const std::size_t pieces = range.positions / kTile * layout.kv_heads;
    bool finite = true;
    for (std::size_t piece = 0; finite && piece < pieces; ++piece) {
      finite = KeyTileIsFinite(layout, in);
      in += layout.KeyTileBytes();
      for (std::size_t row = 0; finite && layout.ValueRowBytes() > 0 && row < kTile; ++row) {
        finite = ValueRowIsFinite(layout, in);
        in += layout.ValueRowBytes();
      }
    }
    if (!finite) return InvalidArgument("keys: of layer {} a number is not finite", layer);
  }
  return OkStatus();
}

void PutKeys(const KvPool& pool, const KeysRange& range, std::span<const std::byte> bytes,
             KvSequence& sequence) {
  TROUPE_CHECK(range.first + range.positions <= sequence.capacity());
  TROUPE_CHECK(bytes.size() == KeysBytes(pool, range));
  const std::byte* in = bytes.data();
  ForPieces(pool, sequence, range, [&in](const KvLayout&, std::byte* to, std::size_t size, bool) {
    std::memcpy(to, in, size);
    in += size;
  });
}

void CopySequence(KvPool& from_pool, KvSequence& from, std::size_t positions, KvPool& to_pool,
                  KvSequence& to) {
  const std::size_t page = to_pool.page_positions();
  TROUPE_CHECK(from_pool.page_positions() == page && from_pool.layers() == to_pool.layers());
  TROUPE_CHECK(positions <= from.length() && positions <= to.capacity());
  TROUPE_CHECK(to.length() % page == 0 && to.length() <= positions);
  for (std::size_t index = to.length() / page; index * page < positions; ++index) {
    const std::span<std::byte> bytes = from_pool.BytesOf(from.Page(index));
    std::ranges::copy(bytes, to_pool.BytesOf(to.Page(index)).begin());
  }
  to.Advance(positions - to.length());
}

}  // namespace troupe
