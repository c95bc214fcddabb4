// The error of the earliest of many things that threads do at once, whichever of them met its error
// first: what is reported must not depend on threads.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "base/status.h"

namespace troupe {

class FirstError {
 public:
  // `place` orders the things: rows, tasks. An ok status is not noted.
  void Note(std::uint64_t place, Status status) {
    if (status.ok()) return;
    const MutexLock lock(mu_);
    if (error_ && error_->first <= place) return;
    error_.emplace(place, std::move(status));
  }
  // Ok if there was none.
  Status Take() {
    const MutexLock lock(mu_);
    return error_ ? error_->second : OkStatus();
  }

 private:
  Mutex mu_;
  std::optional<std::pair<std::uint64_t, Status>> error_ TROUPE_GUARDED_BY(mu_);
};

}  // namespace troupe
