#include "cluster/wire/peer_message.h"

#include <utility>

namespace troupe {
namespace {

template <typename Message>
Result<PeerMessage> Widened(Result<Message> message) {
  if (!message.ok()) return message.status();
  return PeerMessage(std::move(message).value());
}

}  // namespace

PeerMessageKind KindOf(const PeerMessage& message) {
  return static_cast<PeerMessageKind>(message.index() + 1);
}

std::string ToString(const PeerMessage& message) {
  return std::visit([](const auto& m) { return ToString(m); }, message);
}

std::vector<std::byte> EncodePeerMessage(const PeerMessage& message) {
  return std::visit([](const auto& m) { return Encode(m); }, message);
}

Result<PeerMessage> DecodePeerMessage(std::span<const std::byte> frame) {
  TROUPE_ASSIGN_OR_RETURN(const PeerMessageKind kind, KindOfFrame(frame));
  switch (kind) {
    case PeerMessageKind::kHello:
      return Widened(DecodePeerHello(frame));
    case PeerMessageKind::kRefused:
      return Widened(DecodePeerRefused(frame));
    case PeerMessageKind::kAsk:
      return Widened(DecodePeerAsk(frame));
    case PeerMessageKind::kAnswer:
      return Widened(DecodePeerAnswer(frame));
    case PeerMessageKind::kAskRefused:
      return Widened(DecodePeerAskRefused(frame));
    case PeerMessageKind::kCancel:
      return Widened(DecodePeerCancel(frame));
    case PeerMessageKind::kHoldings:
      return Widened(DecodePeerHoldings(frame));
    case PeerMessageKind::kPing:
      return Widened(DecodePeerPing(frame));
    case PeerMessageKind::kPong:
      return Widened(DecodePeerPong(frame));
    case PeerMessageKind::kFetch:
      return Widened(DecodePeerFetch(frame));
    case PeerMessageKind::kPiece:
      return Widened(DecodePeerPiece(frame));
    case PeerMessageKind::kFetchRefused:
      return Widened(DecodePeerFetchRefused(frame));
    case PeerMessageKind::kReport:
      return Widened(DecodePeerReport(frame));
    case PeerMessageKind::kPlanNotice:
      return Widened(DecodePeerPlanNotice(frame));
    case PeerMessageKind::kAccusation:
      return Widened(DecodePeerAccusation(frame));
  }
  return DataLoss("message, byte 0: kind: unknown");
}

}  // namespace troupe
