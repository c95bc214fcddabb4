#include "troupe/text_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "text/utf8.h"

namespace troupe {

Result<TextSource> TextSource::Open(const std::string& path) {
  const bool standard = path == "-";
  UniqueFd fd(standard ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                       : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string name = standard ? "standard input" : path;
  if (!fd.valid()) return ErrnoStatus(errno, fmt::format("{}: opening it", name));
  return TextSource(std::move(name), std::move(fd));
}

Status TextSource::ReadTo(std::size_t bytes) {
  constexpr std::size_t kPiece = 64 << 10;
  // A file's bytes are taken at once, so that no copy is made while the text grows.
  struct stat facts = {};
  if (::fstat(fd_.get(), &facts) == 0 && S_ISREG(facts.st_mode)) {
    text_.reserve(std::min(bytes, static_cast<std::size_t>(facts.st_size)));
  }
  while (!ended_ && text_.size() < bytes) {
    const std::size_t before = text_.size();
    text_.resize(before + std::min(kPiece, bytes - before));
    const ssize_t got = ::read(fd_.get(), text_.data() + before, text_.size() - before);
    text_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, fmt::format("{}: reading it", path_));
    ended_ = got == 0;
  }
  return OkStatus();
}

std::size_t WholeCharacters(std::string_view text) {
  constexpr std::size_t kLongest = 4;
  for (std::size_t back = 1; back <= std::min(kLongest, text.size()); ++back) {
    const Utf8Prefix last = ReadUtf8(text.substr(text.size() - back));
    if (last.state == Utf8Prefix::State::kCutShort) return text.size() - back;
    if (last.state == Utf8Prefix::State::kValid) break;
  }
  return text.size();
}

}  // namespace troupe
