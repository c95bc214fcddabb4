#include "machine/process_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace troupe {
namespace {

// The numbers of such lines as "VmHWM:  1234 kB", zero for those that are not there.
template <std::size_t kCount>
std::array<Bytes, kCount> StatusLines(const std::array<std::string_view, kCount>& names) {
  std::array<Bytes, kCount> found;
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (!(words >> name >> kibibytes)) continue;
    const auto at = std::ranges::find(names, name);
    if (at != names.end())
      found[static_cast<std::size_t>(at - names.begin())] = Bytes(kibibytes * 1024);
  }
  return found;
}

Bytes RoundUp(Bytes size, Bytes step) { return step * ((size + step - Bytes(1)) / step); }

}  // namespace

Bytes ResidentMemory() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t virtual_pages = 0, resident_pages = 0;
  if (!(file >> virtual_pages >> resident_pages)) return Bytes();
  return Bytes(resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

ResidentParts ResidentMemoryParts() {
  const auto [anonymous, shared, files] = StatusLines<3>({"RssAnon:", "RssShmem:", "RssFile:"});
  return {.own = anonymous + shared, .files = files};
}

Bytes HeldForPlan(const ResidentParts& parts, Bytes mapped) {
  constexpr Bytes kStep = 1_MiB, kFileStep = 4_MiB, kLeastFiles = 16_MiB;
  const Bytes files = mapped >= parts.files
                          ? RoundUp(mapped, kStep)
                          : std::max(RoundUp(parts.files, kFileStep), kLeastFiles);
  return RoundUp(parts.own, kStep) + files;
}

// Not getrusage: its maximum survives exec, and would be that of a larger parent.
Bytes PeakResidentMemory() { return StatusLines<1>({"VmHWM:"}).front(); }

Bytes ReturnFreeMemory() {
  const Bytes before = ResidentMemory();
  ::malloc_trim(0);
  return before - std::min(before, ResidentMemory());
}

}  // namespace troupe
