// How long work on large files tells its caller how far it has got.
#pragma once

#include <functional>

#include "base/bytes.h"

namespace troupe {

// Called now and then, from the thread that called the work. Empty if nobody wants to know.
using ByteProgress = std::function<void(Bytes done, Bytes total)>;

inline void Report(const ByteProgress& progress, Bytes done, Bytes total) {
  if (progress) progress(done, total);
}

}  // namespace troupe
