// How long work on large files tells its caller how far it has got, and is stopped by it.
#pragma once

#include <functional>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

// Called now and then, from the thread that called the work. False: stop with kCancelled. Empty if
// nobody wants to know. Must not throw.
using ByteProgress = std::function<bool(Bytes done, Bytes total)>;

inline Status Report(const ByteProgress& progress, Bytes done, Bytes total) {
  if (!progress || progress(done, total)) return OkStatus();
  return Error(Code::kCancelled, "stopped by its caller after {} of {}", ToString(done),
               ToString(total));
}

}  // namespace troupe
