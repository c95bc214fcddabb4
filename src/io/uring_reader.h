// AsyncReader by io_uring: the kernel reads, this process only hands in and takes out. Registers
// the memory it is told of, so that a read need not pin its pages; a piece of it that a request
// targets is read by its fixed form.
#pragma once

#include <cstddef>
#include <memory>

#include "base/status.h"
#include "io/async_reader.h"

namespace troupe {

// kUnavailable with the reason where the kernel has no io_uring or forbids it.
Result<std::unique_ptr<AsyncReader>> MakeUringReader(std::size_t depth);

}  // namespace troupe
