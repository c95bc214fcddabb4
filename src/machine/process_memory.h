// What the operating system says this process uses.
#pragma once

#include "base/bytes.h"

namespace troupe {

// Zero where the system does not tell.
Bytes ResidentMemory();      // now
Bytes PeakResidentMemory();  // at most, since the process began

}  // namespace troupe
