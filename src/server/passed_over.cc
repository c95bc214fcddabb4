#include "server/passed_over.h"

#include <vector>

#include "base/log.h"

namespace troupe {

void PassedOver::Tell(std::span<const std::string> kinds) {
  if (kinds.empty()) return;
  std::vector<std::string> fresh;
  {
    const MutexLock lock(mu_);
    ++requests_;
    for (const std::string& kind : kinds) {
      if (kinds_.size() < kMostKinds && kinds_.insert(kind).second) fresh.push_back(kind);
    }
  }
  for (const std::string& kind : fresh) {
    LogWarning("a request has {}, which this server does not know: it is passed over", kind);
  }
}

std::uint64_t PassedOver::requests() const {
  const MutexLock lock(mu_);
  return requests_;
}

}  // namespace troupe
