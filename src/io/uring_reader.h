// AsyncReader by io_uring: the kernel reads, this process only submits and collects. Registers the
// memory it is given, so that a read need not pin its pages; requests into registered memory use
// fixed-buffer reads.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "io/async_reader.h"

namespace troupe {

// kUnavailable with the reason where the kernel has no io_uring or forbids it.
Result<std::unique_ptr<AsyncReader>> MakeUringReader(std::size_t depth);

}  // namespace troupe
