#include "split/codec/keys_frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace troupe {
namespace {

constexpr std::string_view kKeysMagic = "TRKV";
constexpr std::uint8_t kKeysVersion = 1;

// Little-endian, like every machine that Troupe runs on.
static_assert(std::endian::native == std::endian::little);
struct KeysHead {
  std::array<char, 4> magic;
  std::uint8_t version;
  std::uint8_t type;
  std::uint16_t zero;
  std::uint32_t first_layer, layers, first, positions;
};
static_assert(sizeof(KeysHead) == kKeysFrameBytes);

template <typename... Args>
Status NoKeys(fmt::format_string<Args...> format, Args&&... args) {
  return DataLoss("keys: {}", fmt::format(format, std::forward<Args>(args)...));
}

Status CheckKeysHead(const KeysHead& head) {
  constexpr std::uint32_t kTile = KvLayout::kTile;
  if (std::string_view(head.magic.data(), head.magic.size()) != kKeysMagic) {
    return NoKeys("they do not begin with {}", kKeysMagic);
  }
  if (head.version != kKeysVersion || head.zero != 0) {
    return NoKeys("version {}, {} expected", head.version, kKeysVersion);
  }
  if (head.type > static_cast<std::uint8_t>(KvType::kQ8_0)) {
    return NoKeys("type {}, 0 to {} expected", head.type, static_cast<int>(KvType::kQ8_0));
  }
  if (head.layers < 1 || head.layers > kMostKeysLayers || head.first_layer > kMostKeysLayers) {
    return NoKeys("{} layers from {} on, 1 to {} expected", head.layers, head.first_layer,
                  kMostKeysLayers);
  }
  if (head.positions < 1 || head.positions > kMostKeysPositions || head.positions % kTile != 0) {
    return NoKeys("{} positions, a multiple of {} up to {} expected", head.positions, kTile,
                  kMostKeysPositions);
  }
  if (head.first > kMostKeysPosition || head.first % kTile != 0) {
    return NoKeys("position {}, a multiple of {} up to {} expected", head.first, kTile,
                  kMostKeysPosition);
  }
  return OkStatus();
}

}  // namespace

std::vector<std::byte> EncodeKeys(const KeysFrame& frame, std::span<const std::byte> keys) {
  KeysHead head{.magic = {},
                .version = kKeysVersion,
                .type = static_cast<std::uint8_t>(frame.type),
                .zero = 0,
                .first_layer = frame.first_layer,
                .layers = frame.layers,
                .first = frame.first,
                .positions = frame.positions};
  std::ranges::copy(kKeysMagic, head.magic.begin());
  TROUPE_CHECK(CheckKeysHead(head).ok());
  std::vector<std::byte> message(sizeof head + keys.size());
  std::memcpy(message.data(), &head, sizeof head);
  std::ranges::copy(keys, message.begin() + sizeof head);
  return message;
}

Result<KeysFrame> ReadKeysFrame(std::span<const std::byte> message) {
  KeysHead head;
  if (message.size() < sizeof head) {
    return NoKeys("{} bytes, a head of {} expected", message.size(), sizeof head);
  }
  std::memcpy(&head, message.data(), sizeof head);
  TROUPE_RETURN_IF_ERROR(CheckKeysHead(head));
  return KeysFrame{.type = static_cast<KvType>(head.type),
                   .first_layer = head.first_layer,
                   .layers = head.layers,
                   .first = head.first,
                   .positions = head.positions};
}

bool IsKeysMessage(std::span<const std::byte> message) {
  return message.size() >= kKeysMagic.size() &&
         std::memcmp(message.data(), kKeysMagic.data(), kKeysMagic.size()) == 0;
}

}  // namespace troupe
