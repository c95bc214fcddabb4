// What two nodes say first, each to the other: who they are and with what they compute. Whether the
// two fit together is decided elsewhere. Also what ends a link.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cluster/wire/expert_bits.h"
#include "cluster/wire/wire_rows.h"

namespace troupe {

// Raised by each change of the format. A hello's bytes before the version, and all of PeerRefused,
// are the same in every version, so that nodes of different versions can say that they are.
inline constexpr std::uint16_t kWireVersion = 4;

struct PeerHello {
  std::uint64_t start_id = 0;               // random at each start of the node
  std::array<std::uint64_t, 2> model = {};  // the words of its fingerprint
  std::uint64_t arithmetic = 0;             // digest of what this machine's kernels compute
  ExpertGrid grid;
  std::uint32_t width = 0;         // of the rows that experts take and give
  RowForm form = RowForm::kFloat;  // of the rows that they take
  std::uint64_t plan_epoch = 0;
  std::string cluster;
  std::string node;
  std::string address;  // where it listens for peers

  bool operator==(const PeerHello&) const = default;
};

// The sender ends the link after it.
struct PeerRefused {
  enum class Reason : std::uint8_t {
    kOther = 0,  // one that this version does not know: the text says it
    kOtherWire = 1,
    kOtherModel = 2,
    kOtherArithmetic = 3,
    kOtherCluster = 4,
    kNameTaken = 5,
    kStopping = 6,
    kBadMessage = 7,        // a frame that cannot be read
    kWrongAnswer = 8,       // rows that are not the experts'
    kOtherCertificate = 9,  // one that does not name the address
  };
  Reason reason = Reason::kOther;
  std::string text;

  bool operator==(const PeerRefused&) const = default;
};

// The fingerprint of its model as plans and stores have it.
std::string ModelText(const PeerHello& hello);

std::string_view ToString(PeerRefused::Reason reason);
std::string ToString(const PeerHello& hello);
std::string ToString(const PeerRefused& refused);

std::vector<std::byte> Encode(const PeerHello& hello);
std::vector<std::byte> Encode(const PeerRefused& refused);

// kUnimplemented for a hello in another version of the wire: to be answered by kOtherWire.
Result<PeerHello> DecodePeerHello(std::span<const std::byte> frame);
Result<PeerRefused> DecodePeerRefused(std::span<const std::byte> frame);

}  // namespace troupe
