// How many bytes of what travels between a node and its peers the node keeps at most, and what it
// takes beside its engine because of them: the plan of memory counts it. Pure.
//
// What is beyond a limit is refused, or as good as lost: calls go to another holder or to the disk,
// links are dialled again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "model/config.h"

namespace troupe {

// Experts that are on their way from peers at a time.
inline constexpr std::uint32_t kExpertsFetched = 2;

// Answers of peers that wait to be computed again; as many are computed meanwhile.
inline constexpr std::size_t kMostBytesToCheck = std::size_t{2} << 20;

struct NodeBuffers {
  std::size_t frame = 0;     // one message
  std::size_t unread = 0;    // answers that no pass has looked at
  std::size_t waiting = 0;   // calls of peers that wait to be computed
  std::size_t unsent = 0;    // what waits to be sent on a link; twice that on all
  std::size_t received = 0;  // that gRPC has read of all links and not given out
};

// The same on all nodes of a cluster, however large a node's own passes may be: what one sends the
// others must take. Calls for more rows go to the disk.
inline constexpr std::uint32_t kMostRowsAsked = 512;

NodeBuffers BuffersFor(const ModelConfig& config);

// What a node takes beside its engine, and beside the experts that it fetches.
Bytes NodeMemory(const ModelConfig& config);

}  // namespace troupe
