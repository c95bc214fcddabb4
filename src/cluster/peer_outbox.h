// Where frames to peers go: a node's links, or a test's script.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "base/status.h"
#include "cluster/transport/peer_links.h"

namespace troupe {

// Any thread; never waits. An error: the frame was not sent.
using SendFrame = std::function<Status(LinkId link, std::vector<std::byte> frame)>;

}  // namespace troupe
