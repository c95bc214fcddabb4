// Keys and values of a sequence in some layers, of whole tiles of positions, as bytes for another
// machine that has the same layers and type, and back: the KV cache's own bytes, so that whoever
// has them goes on as if it had read the tokens itself. By layer, position and head the tile of
// keys and then the rows of values. Threads: the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/kv_pool.h"
#include "model/layer_range.h"

namespace troupe {

struct KeysRange {
  LayerRange layers;
  std::size_t first = 0, positions = 0;  // multiples of KvLayout::kTile

  bool operator==(const KeysRange&) const = default;
};
struct KeysPart {
  KeysRange range;
  std::vector<std::byte> bytes;
};

// Of the positions up to there: those of whole tiles that leave at least one token, whose logits
// somebody wants.
inline std::size_t WholeTilesBefore(std::size_t tokens) {
  return tokens == 0 ? 0 : (tokens - 1) / KvLayout::kTile * KvLayout::kTile;
}

// A position's in a layer.
std::size_t KeysBytes(const KvLayout& layout);
// REQUIRES: the pool has the layers.
std::size_t KeysBytes(const KvPool& pool, const KeysRange& range);

// Of a sequence that has the positions filled, in parts of consecutive layers and at most that many
// bytes, or of one layer.
std::vector<KeysPart> CopyKeys(const KvPool& pool, const KvSequence& sequence,
                               const KeysRange& range, std::size_t most_bytes);
// kInvalidArgument: other than KeysBytes, or a number that is not finite.
Status CheckKeys(const KvPool& pool, const KeysRange& range, std::span<const std::byte> bytes);
// Into pages that the sequence has reserved; CheckKeys has accepted them.
void PutKeys(const KvPool& pool, const KeysRange& range, std::span<const std::byte> bytes,
             KvSequence& sequence);

// Fills a sequence up to a length for which it has room; whole pages of it are filled already.
using FillSequence = std::function<void(KvSequence& sequence, std::size_t length)>;

// The first positions in all layers, from a sequence of a pool to one of another pool with the same
// pages, which has room for them and has filled whole pages with those before.
void CopySequence(KvPool& from_pool, KvSequence& from, std::size_t positions, KvPool& to_pool,
                  KvSequence& to);

}  // namespace troupe
