// What a peer computed for a call (ask.h): rows, expert by expert, in the form that was asked for.
// A call may be answered in several messages, each with some of its experts; the last one says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/wire/wire_rows.h"

namespace troupe {

struct PeerAnswer {
  std::uint64_t call = 0;
  bool last = false;
  std::uint32_t waited_micros = 0;  // since the ask's arrival, so far, while others were worked on
  std::uint32_t computed_micros = 0;  // for this message
  std::uint32_t waiting = 0;          // calls in the peer's queue now
  std::vector<ExpertRows> experts;    // each once, with at least a row; none is for the last alone
  WireRows rows;                      // those of the first expert, then of the next

  bool operator==(const PeerAnswer&) const = default;
};

std::string ToString(const PeerAnswer& answer);

// All but the rows; answer.rows.bytes is not looked at.
RowFrame MakeFrame(const PeerAnswer& answer);
std::vector<std::byte> Encode(const PeerAnswer& answer);

// The answer shows the frame, which must outlive it and lie at a multiple of kFrameAlignment.
// Whether it fits what was asked is for the asker to see.
Result<PeerAnswer> DecodePeerAnswer(std::span<const std::byte> frame);

}  // namespace troupe
