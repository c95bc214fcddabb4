#include "model/kv_cache.h"

#include "base/check.h"

namespace troupe {
namespace {

std::uint64_t AlignedLayerBytes(const KvLayout& layout) {
  return AlignUp(layout.TotalBytes().count(), kCacheLine.count());
}

}  // namespace

KvLayout KvCache::LayoutFor(const ModelConfig& config, KvType type, std::size_t positions) {
  const AttentionConfig& a = config.attention;
  return {.type = type,
          .kv_heads = a.kv_heads,
          .k_dim = a.key_dim,
          .v_dim = a.value_dim,
          .values_in_keys = a.mla.has_value(),
          .capacity = AlignUp(positions, KvLayout::kTile)};
}

Bytes KvCache::BytesFor(const ModelConfig& config, KvType type, std::size_t positions) {
  return config.layers * Bytes(AlignedLayerBytes(LayoutFor(config, type, positions)));
}

Result<KvCache> KvCache::Create(const ModelConfig& config, KvType type, std::size_t positions) {
  const KvLayout layout = LayoutFor(config, type, positions);
  TROUPE_RETURN_IF_ERROR(layout.Check());
  // No huge pages: heads lie far apart, and a page of 2 MiB would make the memory of a whole
  // context resident for the first token of it.
  TROUPE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Allocate(BytesFor(config, type, positions), {.alignment = kPage}));
  return KvCache(layout, positions, std::move(buffer));
}

std::size_t KvCache::LayerBytes() const { return AlignedLayerBytes(layout_); }

void KvCache::Advance(std::size_t tokens) {
  TROUPE_CHECK(length_ + tokens <= capacity_);
  length_ += tokens;
}

void KvCache::Truncate(std::size_t length) {
  TROUPE_CHECK(length <= length_);
  length_ = length;
}

}  // namespace troupe
