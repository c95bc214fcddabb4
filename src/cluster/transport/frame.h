// A message between nodes, as bytes. What they say is cluster/wire.
#pragma once

#include <cstddef>
#include <vector>

namespace troupe {

using Frame = std::vector<std::byte>;

}  // namespace troupe
