// What the operating system says this process has used.
#pragma once

#include "base/bytes.h"

namespace troupe {

Bytes PeakResidentMemory();  // zero where the system does not tell

}  // namespace troupe
