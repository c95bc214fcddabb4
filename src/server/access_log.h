// The log of requests: a line for each that is over, in a file or on standard output. Nothing of
// headers and bodies, so nothing secret. Who adds a line never waits: a thread writes them, and
// where the disk is full or slow lines are lost and counted, and nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status.h"
#include "server/http/http_message.h"

namespace troupe {

enum class LogStyle { kText, kJson };

// Without the line's end. Nothing of a request can begin another line or a field.
std::string AccessLine(const HttpEnded& ended, std::chrono::system_clock::time_point when,
                       LogStyle style);

class AccessLog {
 public:
  struct Counters {
    std::uint64_t written = 0, lost = 0;
  };

  // "-": standard output. A file is added to, and made again when it has been moved away.
  static Result<std::unique_ptr<AccessLog>> Open(const std::string& path, LogStyle style);
  // Writes what still waits.
  ~AccessLog();
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void Add(const HttpEnded& ended);
  Counters counters() const;
  // Why the last lines were lost, as a disk is full; empty: they were written.
  std::string trouble() const;

 private:
  AccessLog(std::string path, LogStyle style, UniqueFd file);
  void Main();
  // Gives how many of them were lost.
  std::size_t Write(const std::deque<std::string>& lines);
  bool TakesMore();
  Status OpenAgainIfMoved();

  const std::string path_;
  const LogStyle style_;
  // The thread's:
  UniqueFd file_;
  bool warned_ = false;  // of a failure that goes on
  std::string problem_;  // what that is; empty: there is none
  bool torn_ = false;    // the last line was not written to its end
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<std::string> waiting_ TROUPE_GUARDED_BY(mu_);
  std::size_t waiting_bytes_ TROUPE_GUARDED_BY(mu_) = 0;
  Counters counters_ TROUPE_GUARDED_BY(mu_);
  std::string trouble_ TROUPE_GUARDED_BY(mu_);
  bool ends_ TROUPE_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace troupe
