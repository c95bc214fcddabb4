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

struct NodeBuffers {
  std::size_t frame = 0;     // one message
  std::size_t unread = 0;    // answers that no pass has looked at
  std::size_t waiting = 0;   // calls of peers that wait to be computed
  std::size_t unsent = 0;    // what waits to be sent on a link; twice that on all
  std::size_t received = 0;  // that gRPC has read of all links and not given out
};

// Of a node whose passes have no more than `rows`.
NodeBuffers BuffersFor(const ModelConfig& config, std::uint32_t rows);

// What a node takes beside its engine.
Bytes NodeMemory(const ModelConfig& config, std::uint32_t rows);

}  // namespace troupe
