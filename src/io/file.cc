#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace troupe {

namespace {

FileIdentity IdentityIn(const struct stat& info) {
  return {
      .device = info.st_dev,
      .inode = info.st_ino,
      .size = static_cast<std::uint64_t>(info.st_size),
      .modified_ns = std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec,
  };
}

}  // namespace

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return IdentityIn(info);
}

ReadFile::ReadFile(std::string path, UniqueFd fd, const FileIdentity& identity)
    : path_(std::move(path)), fd_(std::move(fd)), identity_(identity) {}

Result<ReadFile> ReadFile::Open(std::string path) {
  // O_NONBLOCK: a FIFO must be refused below, not wait here for its writer. Files ignore it.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return ErrnoStatus(errno, path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return ErrnoStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("{}: {} found, expected a file", path,
                           S_ISDIR(info.st_mode) ? "a directory" : "a device, socket or pipe");
  }
  return ReadFile(std::move(path), std::move(fd), IdentityIn(info));
}

Status ReadFile::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size() || out.size() > size() - offset) {
    return ReadPastEnd(path_, size(), offset, out.size());
  }
  std::size_t done = 0;
  while (done < out.size()) {  // pread stops at 2 GiB, and where a signal finds it
    const ssize_t n =
        ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0) {
      if (errno == EINTR) continue;
      return ErrnoStatus(errno, fmt::format("{}: reading {} bytes at byte {}", path_,
                                            out.size() - done, offset + done));
    }
    if (n == 0) {  // somebody cut it after it was opened
      return ReadPastEnd(path_, offset + done, offset, out.size());
    }
    done += static_cast<std::size_t>(n);
  }
  return OkStatus();
}

}  // namespace troupe
