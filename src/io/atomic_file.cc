#include "io/atomic_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "io/temporary_name.h"

namespace troupe {
namespace {

// Large enough that a system call's cost vanishes, small enough to stay in the L2 cache.
constexpr std::size_t kBufferBytes = 256 * 1024;

constexpr mode_t kMode = 0666;  // the umask takes away what the user does not want

constexpr const char* kOpenFiles = "/proc/self/fd";

// The target of a link, so that the link stays a link. An error if the target is not a file:
// replacing a device or a pipe would break it for all its users.
Result<std::string> FileBehind(std::string path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0) return path;  // nothing is there yet
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::weakly_canonical(path, error);
    if (error) return ErrnoStatus(error.value(), fmt::format("{}: following the link", path));
    path = target.string();
    if (::lstat(path.c_str(), &info) != 0) return path;
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument("{}: is {}, expected a file or nothing", path,
                           S_ISDIR(info.st_mode) ? "a folder" : "a device, pipe or socket");
  }
  return path;
}

}  // namespace

AtomicFileWriter::AtomicFileWriter(std::string path, std::string temporary, UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {
  buffer_.reserve(kBufferBytes);
}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)),
      buffer_(std::move(other.buffer_)),
      flushed_(other.flushed_),
      sealed_(other.sealed_),
      failed_(std::move(other.failed_)) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<AtomicFileWriter> AtomicFileWriter::Create(std::string path, Until until) {
  TROUPE_ASSIGN_OR_RETURN(path, FileBehind(std::move(path)));
  RemoveAbandonedTemporaries(path);
  // A file without a name can only get one through the folder of open files.
  if (until == Until::kUnnamed && ::access(kOpenFiles, X_OK) == 0) {
    UniqueFd unnamed(::open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
    if (unnamed.valid()) {
      HoldTemporary(unnamed);  // for the short time in which it will have a temporary name
      return AtomicFileWriter(std::move(path), {}, std::move(unnamed));
    }
  }
  // Some file systems (NFS, FUSE) lack O_TMPFILE and refuse it with various errors. If the folder
  // itself is the problem, the second attempt reports it.
  for (;;) {
    std::string temporary = TemporaryName(path);
    UniqueFd named(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, kMode));
    if (!named.valid() && errno == EEXIST) continue;  // containers may share folder, name and PID
    if (!named.valid()) return ErrnoStatus(errno, fmt::format("{}: creating it", path));
    if (!HoldTemporary(named)) continue;
    return AtomicFileWriter(std::move(path), std::move(temporary), std::move(named));
  }
}

Status AtomicFileWriter::MakePrivate() {
  if (!failed_.ok() || ::fchmod(fd_.get(), 0600) == 0) return failed_;
  return Fail(ErrnoStatus(errno, fmt::format("{}: keeping others from reading it", path_)));
}

Status AtomicFileWriter::Reserve(Bytes size) {
  if (!failed_.ok() || size == Bytes()) return failed_;
  const auto bytes = static_cast<off_t>(size.count());
  if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes) == 0) return OkStatus();
  if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT) return OkStatus();
  return Fail(ErrnoStatus(errno, fmt::format("{}: taking {} for it", path_, ToString(size))));
}

Status AtomicFileWriter::Append(std::span<const std::byte> bytes) {
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(!sealed_);
  if (bytes.size() >= kBufferBytes - buffer_.size()) {
    TROUPE_RETURN_IF_ERROR(Flush());
    if (bytes.size() >= kBufferBytes) {
      TROUPE_RETURN_IF_ERROR(WriteFully(flushed_, bytes));
      flushed_ += bytes.size();
      return OkStatus();
    }
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  return OkStatus();
}

Status AtomicFileWriter::WriteAt(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(!sealed_);
  TROUPE_CHECK(offset <= size() && bytes.size() <= size() - offset);
  TROUPE_RETURN_IF_ERROR(Flush());
  return WriteFully(offset, bytes);
}

Status AtomicFileWriter::SyncSoFar() {
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(!sealed_);
  TROUPE_RETURN_IF_ERROR(Flush());
  if (::fdatasync(fd_.get()) == 0) return OkStatus();
  return Fail(ErrnoStatus(errno, fmt::format("{}: making it durable", path_)));
}

Result<std::string> AtomicFileWriter::Seal() {
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(fd_.valid());
  TROUPE_RETURN_IF_ERROR(Flush());
  if (::fsync(fd_.get()) != 0) {
    return Fail(ErrnoStatus(errno, fmt::format("{}: making it durable", path_)));
  }
  sealed_ = true;
  return temporary_.empty() ? fmt::format("{}/{}", kOpenFiles, fd_.get()) : temporary_;
}

Status AtomicFileWriter::Commit() {
  if (!sealed_) TROUPE_RETURN_IF_ERROR(Seal().status());
  if (!failed_.ok()) return failed_;
  TROUPE_CHECK(fd_.valid());
  TROUPE_RETURN_IF_ERROR(Publish());
  fd_.Reset();
  return OkStatus();
}

// Gives the finished file its name and syncs the folder, without which the name may not survive a
// power failure.
Status AtomicFileWriter::Publish() {
  if (temporary_.empty()) {
    // A link cannot replace a file that exists, a rename can: hence two steps.
    std::string linked = TemporaryName(path_);
    const std::string source = fmt::format("{}/{}", kOpenFiles, fd_.get());
    if (::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, linked.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      return Fail(ErrnoStatus(errno, fmt::format("{}: linking it", linked)));
    }
    temporary_ = std::move(linked);
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return Fail(ErrnoStatus(errno, fmt::format("{}: renaming {} to it", path_, temporary_)));
  }
  temporary_.clear();
  UniqueFd folder(::open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync a folder (EINVAL); the file itself is safe already.
  if (folder.valid() && ::fsync(folder.get()) != 0 && errno != EINVAL) {
    return Fail(ErrnoStatus(errno, fmt::format("{}: making its name durable", path_)));
  }
  return OkStatus();
}

Status AtomicFileWriter::Flush() {
  TROUPE_RETURN_IF_ERROR(WriteFully(flushed_, buffer_));
  flushed_ += buffer_.size();
  buffer_.clear();
  return OkStatus();
}

Status AtomicFileWriter::WriteFully(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) continue;
      return Fail(ErrnoStatus(
          errno, fmt::format("{}: writing {} bytes at byte {}", path_, bytes.size(), offset)));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return OkStatus();
}

Status AtomicFileWriter::Fail(Status status) {
  failed_ = status;
  return status;
}

}  // namespace troupe
