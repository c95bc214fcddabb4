// What requests had that this server does not know and leaves out, such as tools that only another
// server runs. Each kind is logged once, so that whoever runs the server learns of it and nobody
// can fill the log. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>

#include "base/mutex.h"

namespace troupe {

class PassedOver {
 public:
  // Of one request: "a tool of type 'computer'". None: nothing is counted.
  void Tell(std::span<const std::string> kinds);

  std::uint64_t requests() const;  // that had any

 private:
  static constexpr std::size_t kMostKinds = 64;  // that are logged

  mutable Mutex mu_;
  std::set<std::string, std::less<>> kinds_ TROUPE_GUARDED_BY(mu_);
  std::uint64_t requests_ TROUPE_GUARDED_BY(mu_) = 0;
};

}  // namespace troupe
