// Whether a peer is there, how long the way to it is, and how busy it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

struct PeerPing {
  std::uint64_t token = 0;

  bool operator==(const PeerPing&) const = default;
};

struct PeerPong {
  std::uint64_t token = 0;    // of the ping
  std::uint32_t waiting = 0;  // calls in the queue of the node that answers

  bool operator==(const PeerPong&) const = default;
};

std::string ToString(const PeerPing& ping);
std::string ToString(const PeerPong& pong);
std::vector<std::byte> Encode(const PeerPing& ping);
std::vector<std::byte> Encode(const PeerPong& pong);
Result<PeerPing> DecodePeerPing(std::span<const std::byte> frame);
Result<PeerPong> DecodePeerPong(std::span<const std::byte> frame);

}  // namespace troupe
