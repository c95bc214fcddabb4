#include "io/direct_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

namespace troupe {
namespace {

// Kernels from 6.6 on let O_DIRECT pass here, and give the page cache's bytes all the same.
bool LiesInMemory(int fd) {
  struct statfs info;
  if (::fstatfs(fd, &info) != 0) return false;
  return info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC;
}

// Some file systems take the flag and refuse the reads, or want more alignment than we give: only
// a read tells.
Result<bool> AcceptsDirectReads(const ReadFile& file) {
  if (file.size() == 0) return true;
  alignas(kDirectAlignment.count()) std::array<std::byte, kDirectAlignment.count()> first;
  while (::pread(file.fd(), first.data(), first.size(), 0) < 0) {
    if (errno == EINVAL || errno == EOPNOTSUPP) return false;
    if (errno != EINTR) return ErrnoStatus(errno, file.path());
  }
  return true;
}

}  // namespace

Result<DirectFile> DirectFile::Open(std::string path) {
  TROUPE_ASSIGN_OR_RETURN(ReadFile file, ReadFile::Open(std::move(path)));
  if (!LiesInMemory(file.fd()) && ::fcntl(file.fd(), F_SETFL, O_DIRECT) == 0) {
    TROUPE_ASSIGN_OR_RETURN(const bool direct, AcceptsDirectReads(file));
    if (direct) return DirectFile(std::move(file), true);
  }
  // Also takes away O_NONBLOCK, with which io_uring gives EAGAIN where it could have waited.
  if (::fcntl(file.fd(), F_SETFL, 0) != 0) return ErrnoStatus(errno, file.path());
  return DirectFile(std::move(file), false);
}

Status DirectFile::CheckUnchanged() const {
  struct stat info;
  if (::fstat(fd(), &info) != 0) return ErrnoStatus(errno, path());
  if (static_cast<std::uint64_t>(info.st_size) != size()) {
    return DataLoss("{}: changed while in use: {} bytes when it was opened, {} now", path(), size(),
                    info.st_size);
  }
  const std::int64_t modified_ns =
      std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  if (modified_ns != identity().modified_ns) {
    return DataLoss("{}: changed while in use: it was written to after it was opened", path());
  }
  return OkStatus();
}

}  // namespace troupe
