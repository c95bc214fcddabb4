// What the operating system says this process uses, and how it gets back what is free.
#pragma once

#include "base/bytes.h"

namespace troupe {

// Zero where the system does not tell.
Bytes ResidentMemory();      // now
Bytes PeakResidentMemory();  // at most, since the process began

// The system gets the pages back that the allocator holds and nobody uses. How many bytes fewer are
// resident; others may allocate meanwhile, so it can be zero.
Bytes ReturnFreeMemory();

}  // namespace troupe
