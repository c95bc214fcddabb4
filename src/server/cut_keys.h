// Which keys and values of a cut prompt have come, of the layers before the cut and whole tiles of
// positions. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/kv_layout.h"
#include "split/codec/keys_frame.h"

namespace troupe {

class CutKeys {
 public:
  CutKeys() = default;
  // Positions: a multiple of KvLayout::kTile.
  CutKeys(KvType type, std::uint32_t layers, std::size_t positions)
      : type_(type),
        layers_(layers),
        tiles_(positions / KvLayout::kTile),
        has_(layers * tiles_),
        missing_(has_.size()) {}

  // kInvalidArgument: others than those of the prompt, or some of them have come.
  enum class News { kAll, kNone };
  Result<News> Look(const KeysFrame& frame) const {
    const std::uint64_t end = std::uint64_t{frame.first} + frame.positions;
    const std::uint64_t last = std::uint64_t{frame.first_layer} + frame.layers;
    if (frame.type != type_) {
      return InvalidArgument("keys as {}, {} expected", Name(frame.type), Name(type_));
    }
    if (last > layers_ || end > tiles_ * KvLayout::kTile) {
      return InvalidArgument(
          "keys of layers {} to {} at {} to {}, of {} layers and {} positions expected",
          frame.first_layer, last, frame.first, end, layers_, tiles_ * KvLayout::kTile);
    }
    std::size_t had = 0;
    ForEach(frame, [&](std::size_t i) { had += has_[i] ? 1 : 0; });
    if (had == 0) return News::kAll;
    const std::size_t all = frame.layers * (frame.positions / KvLayout::kTile);
    if (had == all) return News::kNone;
    return InvalidArgument("keys at {} to {}, of which some have come already", frame.first, end);
  }
  // REQUIRES: Look says that all are news.
  void Take(const KeysFrame& frame) { Set(frame, true); }
  // They were not what they ought to be: others may come in their place.
  void GiveBack(const KeysFrame& frame) { Set(frame, false); }
  // And they are where they belong.
  void Stored(const KeysFrame& frame) {
    missing_ -= frame.layers * (frame.positions / KvLayout::kTile);
  }

  bool are_all_stored() const { return missing_ == 0; }

 private:
  template <typename Each>
  void ForEach(const KeysFrame& frame, const Each& each) const {
    const std::size_t first = frame.first / KvLayout::kTile;
    for (std::size_t layer = frame.first_layer; layer < frame.first_layer + frame.layers; ++layer) {
      for (std::size_t tile = 0; tile < frame.positions / KvLayout::kTile; ++tile) {
        each(layer * tiles_ + first + tile);
      }
    }
  }
  void Set(const KeysFrame& frame, bool has) {
    ForEach(frame, [&](std::size_t i) { has_[i] = has; });
  }

  KvType type_ = KvType::kF16;
  std::uint32_t layers_ = 0;
  std::size_t tiles_ = 0;
  std::vector<bool> has_;  // by layer and tile
  std::size_t missing_ = 0;
};

}  // namespace troupe
