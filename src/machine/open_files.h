// How many files and sockets this process may have open at the same time.
#pragma once

#include <cstddef>

namespace troupe {

// Raises the limit to `wanted` where it is lower, as far as the system lets this user. The limit
// that holds then.
std::size_t AllowOpenFiles(std::size_t wanted);

}  // namespace troupe
