#include "runtime/process_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace troupe {

Bytes ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t virtual_pages = 0, resident_pages = 0;
  if (!(file >> virtual_pages >> resident_pages)) return Bytes();
  return Bytes(resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

Bytes PeakResidentMemory() {
  struct rusage usage = {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return Bytes();
  return Bytes(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024);
}

}  // namespace troupe
