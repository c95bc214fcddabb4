#include "base/fd.h"

#include <unistd.h>

namespace troupe {

void UniqueFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace troupe
