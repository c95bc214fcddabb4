#include "runtime/planned_memory.h"

#include <algorithm>

namespace troupe {

PlannedMemory& PlannedMemory::OfProcess() {
  static PlannedMemory memory;
  return memory;
}

Result<PlannedMemory::Share> PlannedMemory::Add(
    const std::function<Bytes()>& held, const std::function<Result<Bytes>(Bytes taken)>& plan) {
  const MutexLock lock(mu_);
  const Bytes now = held();
  if (shares_ == 0) before_ = now;
  // Of the plans' memory some is held already; what else the process has taken since is seen only
  // where it is more than what they have not used yet.
  const Bytes taken = std::max(now, before_ + planned_);
  TROUPE_ASSIGN_OR_RETURN(const Bytes total, plan(taken));
  const Bytes size = total > taken ? total - taken : Bytes();
  planned_ = planned_ + size;
  ++shares_;
  return Share(this, size);
}

Status PlannedMemory::Look(const std::function<Bytes()>& held,
                           const std::function<Result<Bytes>(Bytes taken)>& plan) {
  const MutexLock lock(mu_);
  return plan(shares_ == 0 ? held() : before_).status();
}

void PlannedMemory::GiveBack(Bytes size) {
  const MutexLock lock(mu_);
  planned_ = planned_ - size;
  --shares_;
}

}  // namespace troupe
