// AsyncReader by threads that call pread: works everywhere.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "io/async_reader.h"

namespace troupe {

// `threads` reads run at once; further ones, up to `depth`, wait in a queue.
Result<std::unique_ptr<AsyncReader>> MakeThreadReader(std::size_t depth, std::size_t threads = 8);

}  // namespace troupe
