#include "kernels/kv_layout.h"

#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace troupe {
namespace {

constexpr std::size_t kScaleBytes = sizeof(std::uint16_t);
constexpr std::size_t kGroupBytes = kScaleBytes + KvLayout::kQuantGroup;  // of one position

float HalfAt(const std::byte* from) {
  std::uint16_t half;
  std::memcpy(&half, from, sizeof(half));
  return HalfToFloat(half);
}

float Int8At(const std::byte* from) { return std::to_integer<std::int8_t>(*from); }

}  // namespace

std::string_view Name(KvType type) { return type == KvType::kF16 ? "f16" : "q8_0"; }

Status KvLayout::Check() const {
  if (kv_heads == 0 || k_dim == 0 || v_dim == 0) {
    return InvalidArgument("KV cache of {} heads, {} key and {} value dimensions: none may be 0",
                           kv_heads, k_dim, v_dim);
  }
  if (capacity % kTile != 0) {
    return InvalidArgument("KV cache of {} positions: a multiple of {} expected", capacity, kTile);
  }
  if (type == KvType::kQ8_0 && (k_dim % kQuantGroup != 0 || v_dim % kQuantGroup != 0)) {
    return InvalidArgument(
        "KV cache in q8_0: {} key and {} value dimensions, multiples of {} "
        "expected; f16 takes any",
        k_dim, v_dim, kQuantGroup);
  }
  if (values_in_keys && (v_dim > k_dim || v_dim % kTile != 0)) {
    return InvalidArgument(
        "KV cache: values of {} dimensions in keys of {}: at most as many and a "
        "multiple of {} expected",
        v_dim, k_dim, kTile);
  }
  return OkStatus();
}

std::size_t KvLayout::KeyTileBytes() const {
  if (type == KvType::kF16) return kTile * k_dim * sizeof(std::uint16_t);
  return kTile * k_dim / kQuantGroup * kGroupBytes;
}

std::size_t KvLayout::ValueRowBytes() const {
  if (values_in_keys) return 0;
  if (type == KvType::kF16) return AlignUp(v_dim, 16) * sizeof(std::uint16_t);
  return v_dim / kQuantGroup * kGroupBytes;
}

std::size_t KvLayout::KeyTileOffset(std::size_t head, std::size_t position) const {
  TROUPE_DCHECK(head < kv_heads && position < capacity);
  return head * (KeyBytes() + ValueBytes()) + position / kTile * KeyTileBytes();
}

std::size_t KvLayout::ValueRowOffset(std::size_t head, std::size_t position) const {
  TROUPE_DCHECK(head < kv_heads && position < capacity);
  return head * (KeyBytes() + ValueBytes()) + KeyBytes() + position * ValueRowBytes();
}

void LoadKey(const KvLayout& layout, const std::byte* page, std::size_t head, std::size_t position,
             float* row) {
  constexpr std::size_t kTile = KvLayout::kTile, kGroup = KvLayout::kQuantGroup;
  const std::byte* const tile = page + layout.KeyTileOffset(head, position);
  const std::size_t lane = position % kTile;
  for (std::size_t i = 0; i < layout.k_dim; ++i) {
    if (layout.type == KvType::kF16) {
      row[i] = HalfAt(tile + (i * kTile + lane) * sizeof(std::uint16_t));
    } else {
      const std::byte* const group = tile + i / kGroup * kTile * kGroupBytes;
      row[i] = HalfAt(group + lane * kScaleBytes) *
               Int8At(group + kTile * kScaleBytes + i % kGroup * kTile + lane);
    }
  }
}

void LoadValue(const KvLayout& layout, const std::byte* page, std::size_t head,
               std::size_t position, float* row) {
  constexpr std::size_t kGroup = KvLayout::kQuantGroup;
  TROUPE_CHECK(!layout.values_in_keys);
  const std::byte* const from = page + layout.ValueRowOffset(head, position);
  for (std::size_t i = 0; i < layout.v_dim; ++i) {
    if (layout.type == KvType::kF16) {
      row[i] = HalfAt(from + i * sizeof(std::uint16_t));
    } else {
      const std::byte* const group = from + i / kGroup * kGroupBytes;
      row[i] = HalfAt(group) * Int8At(group + kScaleBytes + i % kGroup);
    }
  }
}

}  // namespace troupe
