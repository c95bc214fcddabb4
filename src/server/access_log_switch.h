// The access log of a server that may change to another one, or to none, while requests end.
// Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "server/access_log.h"
#include "server/http/http_message.h"

namespace troupe {

class AccessLogSwitch {
 public:
  // From now on lines go to this one; null: nowhere. Waits until the one before has written its
  // own.
  void Set(std::unique_ptr<AccessLog> log);
  void Add(const HttpEnded& ended);
  // Since Set; absent: there is no log.
  std::optional<AccessLog::Counters> counters() const;
  // As AccessLog's; empty where there is no log.
  std::string trouble() const;

 private:
  mutable Mutex mu_;
  std::unique_ptr<AccessLog> log_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
