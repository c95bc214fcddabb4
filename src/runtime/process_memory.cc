#include "runtime/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace troupe {

Bytes PeakResidentMemory() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return Bytes();
  return Bytes(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
}

Bytes CurrentResidentMemory() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total = 0, resident = 0;
  if (!(statm >> total >> resident)) return Bytes();
  return Bytes(resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

}  // namespace troupe
