#include "runtime/process_memory.h"

#include <sys/resource.h>

namespace troupe {

Bytes PeakResidentMemory() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return Bytes();
  return Bytes(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
}

}  // namespace troupe
