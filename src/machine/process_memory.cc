#include "machine/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe {

Bytes ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t virtual_pages = 0, resident_pages = 0;
  if (!(file >> virtual_pages >> resident_pages)) return Bytes();
  return Bytes(resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

// Not getrusage: its maximum survives exec, and would be that of a larger parent.
Bytes PeakResidentMemory() {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "VmHWM:") return Bytes(kibibytes * 1024);
  }
  return Bytes();
}

Bytes ReturnFreeMemory() {
  const Bytes before = ResidentMemory();
  ::malloc_trim(0);
  return before - std::min(before, ResidentMemory());
}

}  // namespace troupe
