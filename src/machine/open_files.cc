#include "machine/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace troupe {

std::size_t AllowOpenFiles(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  const rlimit raised{.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max),
                      .rlim_max = limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace troupe
