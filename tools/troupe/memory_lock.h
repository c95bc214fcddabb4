// Keeps what the process holds in memory (--mlock): the system may not swap it out or drop it.
#pragma once

#include "base/status.h"

namespace troupe {

// What is in memory now and what comes into it later; nothing is brought in for it, so that the
// budget holds as before. Fails, with the limit that stands against it, if that is not allowed.
Status LockMemory();

}  // namespace troupe
