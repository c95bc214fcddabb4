#include "server/access_log_switch.h"

namespace troupe {

void AccessLogSwitch::Set(std::unique_ptr<AccessLog> log) {
  const MutexLock lock(mu_);
  log_.swap(log);  // the one before is destroyed by the caller, without the lock
}

void AccessLogSwitch::Add(const HttpEnded& ended) {
  const MutexLock lock(mu_);
  if (log_ != nullptr) log_->Add(ended);
}

std::optional<AccessLog::Counters> AccessLogSwitch::counters() const {
  const MutexLock lock(mu_);
  if (log_ == nullptr) return std::nullopt;
  return log_->counters();
}

std::string AccessLogSwitch::trouble() const {
  const MutexLock lock(mu_);
  return log_ == nullptr ? std::string() : log_->trouble();
}

}  // namespace troupe
