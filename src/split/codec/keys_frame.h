// Keys and values of a prompt that is cut between two layers, as one message: of which layers and
// positions they are, then their bytes as the KV cache has them. Pure: it does not know what those
// are (runtime/part_keys.h does). The format is docs/formats/states.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/kv_layout.h"

namespace troupe {

inline constexpr std::size_t kKeysFrameBytes = 24;  // before the keys and values
inline constexpr std::uint32_t kMostKeysLayers = 1 << 16;
inline constexpr std::uint32_t kMostKeysPosition = 1 << 30;
inline constexpr std::uint32_t kMostKeysPositions = 1 << 20;

struct KeysFrame {
  KvType type = KvType::kF16;
  std::uint32_t first_layer = 0, layers = 0;
  std::uint32_t first = 0, positions = 0;  // both of whole tiles (KvLayout::kTile)

  bool operator==(const KeysFrame&) const = default;
};

// The message with these bytes behind it.
std::vector<std::byte> EncodeKeys(const KeysFrame& frame, std::span<const std::byte> keys);
// What the message says before its bytes. kDataLoss: this is no such message. How many bytes there
// ought to be is the caller's to know.
Result<KeysFrame> ReadKeysFrame(std::span<const std::byte> message);
// Whether it begins like one, and not like rows.
bool IsKeysMessage(std::span<const std::byte> message);

inline std::span<const std::byte> KeysOf(std::span<const std::byte> message) {
  return message.subspan(kKeysFrameBytes);
}

}  // namespace troupe
