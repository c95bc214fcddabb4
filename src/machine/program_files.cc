#include "machine/program_files.h"

#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/sanitized.h"

namespace troupe {
namespace {

std::atomic<std::uint64_t> mapped = 0;

// Of one segment; read in place of MADV_POPULATE_READ, which kernels before 5.14 do not know.
std::uint64_t MapPages(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  begin -= begin % page;
  for (std::uintptr_t at = begin; at < end; at += page) {
    (void)*reinterpret_cast<const volatile std::byte*>(at);
  }
  return (end - begin + page - 1) / page * page;
}

int MapObject(dl_phdr_info* object, std::size_t, void* sum) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    *static_cast<std::uint64_t*>(sum) += MapPages(begin, begin + segment.p_filesz);
  }
  return 0;
}

}  // namespace

Bytes MapProgramFiles() {
  std::uint64_t sum = 0;
  if (!kSanitized) ::dl_iterate_phdr(MapObject, &sum);
  mapped = sum;
  return Bytes(sum);
}

Bytes MappedProgramFiles() { return Bytes(mapped); }

}  // namespace troupe
