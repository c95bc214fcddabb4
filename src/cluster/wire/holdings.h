// Which experts a node keeps in memory for everybody now, whatever the plan says. Calls follow it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/wire/expert_bits.h"

namespace troupe {

struct PeerHoldings {
  std::uint64_t epoch = 0;     // of the plan that the node carries out
  std::uint64_t sequence = 0;  // larger in each such message of a node
  ExpertBits held;

  bool operator==(const PeerHoldings&) const = default;
};

std::string ToString(const PeerHoldings& holdings);
std::vector<std::byte> Encode(const PeerHoldings& holdings);
Result<PeerHoldings> DecodePeerHoldings(std::span<const std::byte> frame);

}  // namespace troupe
