#include "fetch/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/json.h"
#include "io/file.h"
#include "io/temporary_name.h"
#include "io/text_file.h"

namespace troupe {
namespace {

constexpr mode_t kPartMode = 0666;
constexpr Bytes kLargestFacts = 64_KiB;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Locked, and still the file of that name; invalid: there is none. kUnavailable: somebody has it.
Result<UniqueFd> OpenLocked(const std::string& part, int flags) {
  for (;;) {
    UniqueFd fd(::open(part.c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, kPartMode));
    if (!fd.valid() && errno == ENOENT && (flags & O_CREAT) == 0) return fd;
    if (!fd.valid()) return ErrnoStatus(errno, fmt::format("{}: opening it", part));
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return ErrnoStatus(errno, fmt::format("{}: locking it", part));
      return Error(Code::kUnavailable, "{}: another `troupe pull` is getting it", part);
    }
    struct stat own = {};
    struct stat named = {};
    if (::fstat(fd.get(), &own) == 0 && ::stat(part.c_str(), &named) == 0 &&
        own.st_ino == named.st_ino && own.st_dev == named.st_dev) {
      return fd;
    }  // whoever had it has renamed or removed it meanwhile
  }
}

}  // namespace

PartFile::PartFile(std::string path, const PulledFile& wanted, UniqueFd fd)
    : path_(std::move(path)), wanted_(wanted), fd_(std::move(fd)) {}

Result<PartFile> PartFile::Open(std::string path, const PulledFile& wanted) {
  TROUPE_ASSIGN_OR_RETURN(UniqueFd fd, OpenLocked(path + ".part", O_CREAT));
  PartFile file(std::move(path), wanted, std::move(fd));
  TROUPE_RETURN_IF_ERROR(file.ReadFacts());
  return file;
}

// What the bytes are of must be known, or they are worth nothing.
Status PartFile::ReadFacts() {
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0) return ErrnoStatus(errno, part());
  const auto found = static_cast<std::uint64_t>(info.st_size);
  const Result<std::string> text = ReadWholeText(facts(), kLargestFacts);
  const std::optional<Json> json = text.ok() ? Json::Parse(*text) : std::nullopt;
  const auto says = [&](const char* key, const Json& value) {
    return json && json->Find(key) != nullptr && *json->Find(key) == value;
  };
  const Json* const etag = json ? json->Find("etag") : nullptr;
  if (etag != nullptr && etag->IsString()) etag_ = etag->AsString();
  const bool known = says("bytes", wanted_.bytes) && says("sha256", wanted_.sha256) &&
                     (!wanted_.sha256.empty() || !etag_.empty());
  if (!known || found > wanted_.bytes) return StartAnew();
  size_ = found;
  return OkStatus();
}

Status PartFile::WriteFacts() const {
  const Json json = {{"bytes", wanted_.bytes}, {"sha256", wanted_.sha256}, {"etag", etag_}};
  return WriteWholeText(facts(), json.Dump() + "\n");
}

Status PartFile::Reserve() const {
  if (size_ >= wanted_.bytes) return OkStatus();
  const auto from = static_cast<off_t>(size_);
  const auto length = static_cast<off_t>(wanted_.bytes - size_);
  if (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, from, length) == 0) return OkStatus();
  if (errno != ENOSPC && errno != EFBIG && errno != EDQUOT) return OkStatus();
  return ErrnoStatus(errno,
                     fmt::format("{}: taking {} for it", path_, ToString(Bytes(wanted_.bytes))));
}

Status PartFile::SetEtag(const std::string& etag) {
  etag_ = etag;
  return WriteFacts();
}

Status PartFile::StartAnew() {
  if (::ftruncate(fd_.get(), 0) != 0) return ErrnoStatus(errno, part());
  size_ = 0;
  hash_ = Sha256();
  etag_.clear();
  return WriteFacts();
}

Status PartFile::ReadAgain(const std::function<bool(std::uint64_t)>& go_on) {
  std::vector<std::byte> piece(kPieceBytes);
  hash_ = Sha256();
  for (std::uint64_t at = 0; at < size_;) {
    const std::size_t length = std::min<std::uint64_t>(piece.size(), size_ - at);
    const ssize_t n = ::pread(fd_.get(), piece.data(), length, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("{}: reading it", part()));
    if (n == 0) return DataLoss("{}: became shorter while it was read", part());
    hash_.Add(std::span(piece).first(static_cast<std::size_t>(n)));
    at += static_cast<std::uint64_t>(n);
    if (go_on && !go_on(at)) return Error(Code::kCancelled, "stopped");
  }
  return OkStatus();
}

Result<std::vector<std::byte>> PartFile::FirstBytes(std::uint64_t most) const {
  std::vector<std::byte> bytes(std::min(most, size_));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n =
        ::pread(fd_.get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("{}: reading it", part()));
    if (n == 0) return DataLoss("{}: became shorter while it was read", part());
    at += static_cast<std::size_t>(n);
  }
  return bytes;
}

Status PartFile::Append(std::span<const std::byte> bytes) {
  if (bytes.size() > wanted_.bytes - size_) {
    return DataLoss("{}: listed with {} bytes, and the server sends more", path_, wanted_.bytes);
  }
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus(errno, fmt::format("{}: writing at byte {}", part(), size_));
    hash_.Add(bytes.first(static_cast<std::size_t>(n)));
    bytes = bytes.subspan(static_cast<std::size_t>(n));
    size_ += static_cast<std::uint64_t>(n);
  }
  return OkStatus();
}

Status PartFile::Finish() {
  if (size_ != wanted_.bytes) {
    return DataLoss("{}: {} of {} bytes are there", path_, size_, wanted_.bytes);
  }
  if (const std::string sum = hash_.Finish(); !wanted_.sha256.empty() && sum != wanted_.sha256) {
    ::unlink(part().c_str());
    ::unlink(facts().c_str());
    return DataLoss("{}: what came is not what was listed: SHA-256 {}, expected {}; it was removed",
                    path_, sum, wanted_.sha256);
  }
  if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, fmt::format("{}: syncing", part()));
  if (::rename(part().c_str(), path_.c_str()) != 0) {
    return ErrnoStatus(errno, fmt::format("{}: renaming {} to it", path_, part()));
  }
  ::unlink(facts().c_str());
  UniqueFd folder(::open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid() && ::fsync(folder.get()) != 0 && errno != EINVAL) {
    return ErrnoStatus(errno, fmt::format("{}: making its name durable", path_));
  }
  return OkStatus();
}

Status RemovePartFile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const UniqueFd fd, OpenLocked(path + ".part", 0));
  if (fd.valid()) ::unlink((path + ".part").c_str());
  ::unlink((path + ".part.json").c_str());
  return OkStatus();
}

std::uint64_t SizeOfPartFile(const std::string& path) {
  const std::optional<FileIdentity> found = IdentityOf(path + ".part");
  return found ? found->size : 0;
}

}  // namespace troupe
