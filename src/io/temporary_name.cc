#include "io/temporary_name.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace troupe {
namespace {

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

constexpr std::string_view kEnd = ".troupe-tmp";

std::string Host() {
  struct utsname names = {};
  std::string host = ::uname(&names) == 0 ? names.nodename : "";
  std::ranges::replace(host, '/', '_');
  return host;
}

// Whether TemporaryName could have made it, on this machine, of a file called `target`.
bool IsTemporaryOf(std::string_view target, std::string_view name) {
  const std::string begin = fmt::format("{}.{}-", target, Host());
  if (!name.starts_with(begin) || !name.ends_with(kEnd)) return false;
  if (name.size() < begin.size() + kEnd.size()) return false;
  name = name.substr(begin.size(), name.size() - begin.size() - kEnd.size());
  const std::size_t dash = name.find('-');
  return dash != std::string_view::npos && IsNumber(name.substr(0, dash)) &&
         IsNumber(name.substr(dash + 1));
}

int Lock(int fd, int how) {
  int result = 0;
  do {
    result = ::flock(fd, how);
  } while (result != 0 && errno == EINTR);
  return result;
}

void RemoveIfAbandoned(const std::string& path) {
  // For writing: NFS gives an exclusive lock to no other.
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info = {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (Lock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
}

}  // namespace

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string TemporaryName(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return fmt::format("{}.{}-{}-{}{}", path, Host(), ::getpid(), count.fetch_add(1), kEnd);
}

void RemoveAbandonedTemporaries(const std::string& path) {
  const std::string target = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  std::error_code error;  // what cannot be listed cannot be cleared; writing there will say why
  std::filesystem::directory_iterator entry(FolderOf(path), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (IsTemporaryOf(target, entry->path().filename().string())) {
      RemoveIfAbandoned(entry->path().string());
    }
  }
}

bool HoldTemporary(const UniqueFd& file) {
  // Whoever holds it now is about to remove it, and lets go at once.
  if (Lock(file.get(), LOCK_EX) != 0) return true;
  struct stat info = {};
  return ::fstat(file.get(), &info) != 0 || info.st_nlink > 0;
}

}  // namespace troupe
