// Any message between two nodes: what a link reads and dispatches, and what logs print. Format:
// docs/formats/peer.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/status.h"
#include "cluster/wire/accusation.h"
#include "cluster/wire/answer.h"
#include "cluster/wire/ask.h"
#include "cluster/wire/fetch.h"
#include "cluster/wire/hello.h"
#include "cluster/wire/holdings.h"
#include "cluster/wire/message_kind.h"
#include "cluster/wire/ping.h"
#include "cluster/wire/plan_notice.h"
#include "cluster/wire/report.h"

namespace troupe {

// In the order of PeerMessageKind.
using PeerMessage = std::variant<PeerHello, PeerRefused, PeerAsk, PeerAnswer, PeerAskRefused,
                                 PeerCancel, PeerHoldings, PeerPing, PeerPong, PeerFetch, PeerPiece,
                                 PeerFetchRefused, PeerReport, PeerPlanNotice, PeerAccusation>;

PeerMessageKind KindOf(const PeerMessage& message);
std::string ToString(const PeerMessage& message);  // one line
std::vector<std::byte> EncodePeerMessage(const PeerMessage& message);

// An ask, an answer and a piece show the frame, which must outlive them and lie at a multiple of
// kFrameAlignment.
Result<PeerMessage> DecodePeerMessage(std::span<const std::byte> frame);

}  // namespace troupe
