#include "cluster/wire/message_kind.h"

namespace troupe {

std::string_view ToString(PeerMessageKind kind) {
  switch (kind) {
    case PeerMessageKind::kHello:
      return "hello";
    case PeerMessageKind::kRefused:
      return "refused";
    case PeerMessageKind::kAsk:
      return "ask";
    case PeerMessageKind::kAnswer:
      return "answer";
    case PeerMessageKind::kAskRefused:
      return "ask refused";
    case PeerMessageKind::kCancel:
      return "cancel";
    case PeerMessageKind::kHoldings:
      return "holdings";
    case PeerMessageKind::kPing:
      return "ping";
    case PeerMessageKind::kPong:
      return "pong";
    case PeerMessageKind::kFetch:
      return "fetch";
    case PeerMessageKind::kPiece:
      return "piece";
    case PeerMessageKind::kFetchRefused:
      return "fetch refused";
    case PeerMessageKind::kReport:
      return "report";
    case PeerMessageKind::kPlanNotice:
      return "plan notice";
    case PeerMessageKind::kAccusation:
      return "accusation";
  }
  return "unknown";
}

Result<PeerMessageKind> KindOfFrame(std::span<const std::byte> frame) {
  if (frame.empty()) return DataLoss("message, byte 0: kind: 0 bytes found, 1 expected");
  const auto kind = std::to_integer<unsigned>(frame[0]);
  const auto last = static_cast<unsigned>(PeerMessageKind::kAccusation);
  if (kind < 1 || kind > last) {
    return DataLoss("message, byte 0: kind: {} found, 1 to {} expected", kind, last);
  }
  return static_cast<PeerMessageKind>(kind);
}

}  // namespace troupe
