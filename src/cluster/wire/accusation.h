// That a node has found out a peer: it answered rows that are not the expert's. Who hears of it
// looks for itself, and does not believe it: a node that lies can accuse others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct PeerAccusation {
  std::uint64_t accused = 0;  // the start id of who answered
  std::uint32_t layer = 0;
  std::uint32_t expert = 0;

  bool operator==(const PeerAccusation&) const = default;
};

std::string ToString(const PeerAccusation& accusation);
std::vector<std::byte> Encode(const PeerAccusation& accusation);
Result<PeerAccusation> DecodePeerAccusation(std::span<const std::byte> frame);

}  // namespace troupe
