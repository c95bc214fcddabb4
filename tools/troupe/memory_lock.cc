#include "troupe/memory_lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "base/bytes.h"

namespace troupe {

Status LockMemory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return OkStatus();
  const int why = errno;
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const std::string allowed =
      limit.rlim_cur == RLIM_INFINITY ? "any number of bytes" : ToString(Bytes(limit.rlim_cur));
  return ErrnoStatus(why, fmt::format("--mlock: locking memory, of which {} may be locked "
                                      "(ulimit -l)",
                                      allowed));
}

}  // namespace troupe
