#include "server/access_log.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "base/log.h"

namespace troupe {
namespace {

constexpr std::size_t kMostWaitingBytes = 1 << 20;
constexpr std::size_t kMostPath = 512;

std::string_view NameOf(HttpEnded::How how) {
  switch (how) {
    case HttpEnded::How::kAnswered:
      return "answered";
    case HttpEnded::How::kLeft:
      return "left";
    case HttpEnded::How::kTooSlow:
      return "too_slow";
    case HttpEnded::How::kCutOff:
      return "cut_off";
  }
  return "";
}

// "2026-11-23T13:34:47.123Z"
std::string TimeOf(std::chrono::system_clock::time_point when) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(when);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(milliseconds);
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (milliseconds - seconds).count());
}

// As it was sent, and never more than one word.
std::string Word(std::string_view text) {
  if (text.empty()) return "-";
  std::string word;
  for (const char c : text.substr(0, kMostPath)) {
    const bool is_plain = c > ' ' && c < '\x7F' && c != '\\';
    word += is_plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return word;
}

Result<UniqueFd> OpenLog(const std::string& path) {
  if (path == "-") return UniqueFd(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0));
  UniqueFd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640));
  if (file.valid()) return file;
  return Error(errno == ENOENT ? Code::kNotFound : Code::kPermissionDenied, "{}: {}", path,
               std::strerror(errno));
}

}  // namespace

std::string AccessLine(const HttpEnded& ended, std::chrono::system_clock::time_point when,
                       LogStyle style) {
  if (style == LogStyle::kText) {
    return fmt::format("{} {} {} {} {} {} B {:.3f} s {} {} {} {} {}", TimeOf(when),
                       Word(ended.peer), Word(ended.method), Word(ended.path), ended.status,
                       ended.bytes, ended.seconds, NameOf(ended.how), Word(ended.id),
                       Word(ended.use.model), ended.use.prompt_tokens, ended.use.answer_tokens);
  }
  return Json{{"time", TimeOf(when)},
              {"peer", ended.peer},
              {"method", Word(ended.method)},
              {"path", Word(ended.path)},
              {"status", ended.status},
              {"bytes", ended.bytes},
              {"seconds", ended.seconds},
              {"end", NameOf(ended.how)},
              {"id", Word(ended.id)},
              {"model", Word(ended.use.model)},
              {"prompt_tokens", ended.use.prompt_tokens},
              {"answer_tokens", ended.use.answer_tokens}}
      .Dump();
}

Result<std::unique_ptr<AccessLog>> AccessLog::Open(const std::string& path, LogStyle style) {
  TROUPE_ASSIGN_OR_RETURN(UniqueFd file, OpenLog(path));
  std::unique_ptr<AccessLog> log(new AccessLog(path, style, std::move(file)));
  try {
    log->thread_ = std::thread([self = log.get()] { self->Main(); });
  } catch (const std::system_error& error) {
    return Error(Code::kResourceExhausted, "no thread for the log: {}", error.what());
  }
  return log;
}

AccessLog::AccessLog(std::string path, LogStyle style, UniqueFd file)
    : path_(std::move(path)), style_(style), file_(std::move(file)) {}

AccessLog::~AccessLog() {
  {
    const MutexLock lock(mu_);
    ends_ = true;
    changed_.NotifyOne();
  }
  if (thread_.joinable()) thread_.join();
}

void AccessLog::Add(const HttpEnded& ended) {
  std::string line = AccessLine(ended, std::chrono::system_clock::now(), style_) + "\n";
  const MutexLock lock(mu_);
  if (waiting_bytes_ + line.size() > kMostWaitingBytes) {
    ++counters_.lost;
    return;
  }
  waiting_bytes_ += line.size();
  waiting_.push_back(std::move(line));
  changed_.NotifyOne();
}

AccessLog::Counters AccessLog::counters() const {
  const MutexLock lock(mu_);
  return counters_;
}

std::string AccessLog::trouble() const {
  const MutexLock lock(mu_);
  return trouble_;
}

void AccessLog::Main() {
  for (;;) {
    std::deque<std::string> lines;
    {
      const MutexLock lock(mu_);
      while (!ends_ && waiting_.empty()) changed_.Wait(mu_);
      if (waiting_.empty()) return;
      lines.swap(waiting_);
      waiting_bytes_ = 0;
    }
    const std::size_t lost = Write(lines);
    const MutexLock lock(mu_);
    counters_.written += lines.size() - lost;
    counters_.lost += lost;
    trouble_ = problem_;
  }
}

// Who reads a pipe or a terminal may have stopped: that must not hold up the end of the program.
bool AccessLog::TakesMore() {
  constexpr int kLongestMs = 1000;
  struct stat info = {};
  if (fstat(file_.get(), &info) == 0 && S_ISREG(info.st_mode)) return true;
  pollfd file{.fd = file_.get(), .events = POLLOUT, .revents = 0};
  if (poll(&file, 1, kLongestMs) > 0) return true;
  errno = EAGAIN;
  return false;
}

std::size_t AccessLog::Write(const std::deque<std::string>& lines) {
  const Status opened = OpenAgainIfMoved();
  std::string problem = opened.message();
  std::size_t done = 0;
  for (; opened.ok() && done < lines.size(); ++done) {
    // What is left of a line that found no room stands by itself.
    std::string_view left = lines[done];
    const std::string apart = "\n" + lines[done];
    if (torn_) left = apart;
    while (!left.empty() && TakesMore()) {
      const ssize_t wrote = write(file_.get(), left.data(), left.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) break;
      left.remove_prefix(static_cast<std::size_t>(wrote));
      torn_ = !left.empty();
    }
    if (left.empty()) continue;
    problem = fmt::format("{}: {}", path_, std::strerror(errno));
    break;
  }
  const bool failed = done < lines.size();
  if (failed && !warned_) LogWarning("{}: requests go on without their lines in the log", problem);
  warned_ = failed;
  problem_ = failed ? std::move(problem) : std::string();
  return lines.size() - done;
}

// Programs that rotate logs move the file away and expect another one in its place.
Status AccessLog::OpenAgainIfMoved() {
  if (path_ == "-") return OkStatus();
  struct stat there = {}, here = {};
  const bool is_there = stat(path_.c_str(), &there) == 0;
  if (is_there && fstat(file_.get(), &here) == 0 && there.st_dev == here.st_dev &&
      there.st_ino == here.st_ino) {
    return OkStatus();
  }
  TROUPE_ASSIGN_OR_RETURN(file_, OpenLog(path_));
  torn_ = false;
  return OkStatus();
}

}  // namespace troupe
