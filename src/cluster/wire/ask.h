// A call: a node asks a peer to compute rows of one layer with experts that the peer holds. Also
// what ends a call other than its answer (answer.h): a refusal by the peer, and the asker's change
// of mind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/wire/wire_rows.h"

namespace troupe {

struct PeerAsk {
  struct Expert {
    std::uint16_t expert = 0;
    std::span<const std::uint16_t> rows;  // indices into the message's rows, rising

    bool operator==(const Expert& other) const;
  };

  std::uint64_t call = 0;
  std::uint16_t layer = 0;
  std::uint32_t deadline_micros = 0;  // how long the answer is worth waiting for; 0 if for ever
  std::vector<Expert> experts;        // each once, with at least a row, in the order wanted
  RowForm answer = RowForm::kFloat;   // in which the answer is wanted
  WireRows rows;                      // each once, however many experts it goes to

  bool operator==(const PeerAsk&) const = default;
};

// Nothing of the call, or nothing more of it, will be answered.
struct PeerAskRefused {
  enum class Reason : std::uint8_t {
    kBusy = 1,
    kNotHeld = 2,
    kBad = 3,  // does not fit the model, or has too many rows
    kStopping = 4,
  };
  std::uint64_t call = 0;
  Reason reason = Reason::kBusy;
  std::string text;

  bool operator==(const PeerAskRefused&) const = default;
};

// The asker does not want the answer any more.
struct PeerCancel {
  std::uint64_t call = 0;

  bool operator==(const PeerCancel&) const = default;
};

std::string_view ToString(PeerAskRefused::Reason reason);
std::string ToString(const PeerAsk& ask);
std::string ToString(const PeerAskRefused& refused);
std::string ToString(const PeerCancel& cancel);

// All but the rows; ask.rows.bytes is not looked at.
RowFrame MakeFrame(const PeerAsk& ask);
std::vector<std::byte> Encode(const PeerAsk& ask);
std::vector<std::byte> Encode(const PeerAskRefused& refused);
std::vector<std::byte> Encode(const PeerCancel& cancel);

// The ask shows the frame, which must outlive it and lie at a multiple of kFrameAlignment.
Result<PeerAsk> DecodePeerAsk(std::span<const std::byte> frame);
Result<PeerAskRefused> DecodePeerAskRefused(std::span<const std::byte> frame);
Result<PeerCancel> DecodePeerCancel(std::span<const std::byte> frame);

}  // namespace troupe
