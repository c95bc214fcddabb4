#include "server/end_turns.h"

#include <optional>

namespace troupe {

bool EndTurns::Enter(std::uint64_t end, std::size_t together, Begin begin) {
  {
    const MutexLock lock(mu_);
    if (under_way_ >= together) return queue_.Add(end, {.begin = std::move(begin)});
    ++under_way_;
  }
  begin(Turn(*this));
  return true;
}

void EndTurns::End() {
  std::optional<Waiting> next;
  {
    const MutexLock lock(mu_);
    next = queue_.Next();
    if (!next) --under_way_;
  }
  if (next) next->begin(Turn(*this));
}

std::size_t EndTurns::waiting() const {
  const MutexLock lock(mu_);
  return queue_.size();
}

}  // namespace troupe
