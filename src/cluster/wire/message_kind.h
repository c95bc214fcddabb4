// The first byte of a frame, which says what message it is. The format of all messages:
// docs/formats/peer.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/status.h"

namespace troupe {

enum class PeerMessageKind : std::uint8_t {
  kHello = 1,
  kRefused = 2,
  kAsk = 3,
  kAnswer = 4,
  kAskRefused = 5,
  kCancel = 6,
  kHoldings = 7,
  kPing = 8,
  kPong = 9,
  kFetch = 10,
  kPiece = 11,
  kFetchRefused = 12,
  kReport = 13,
  kPlanNotice = 14,
  kAccusation = 15,
};

std::string_view ToString(PeerMessageKind kind);  // "ask"

// Says what a frame claims to be; the rest of it may still be wrong.
Result<PeerMessageKind> KindOfFrame(std::span<const std::byte> frame);

}  // namespace troupe
