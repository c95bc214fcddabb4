#include "server/end_turns.h"

namespace troupe {

bool EndTurns::May(const HeldBy& all, std::uint64_t end, const Share& share) {
  const auto found = all.find(end);
  if (found == all.end()) return true;
  const Held& held = found->second;
  return held.turns < share.turns && held.sizes < share.sizes &&
         share.size <= share.sizes - held.sizes;
}

std::optional<EndTurns::Waiting> EndTurns::NextOf(FairQueue<Waiting>& queue, const HeldBy& all) {
  std::optional<Waiting> next = queue.Next(
      [&all](std::uint64_t end, const Waiting& one) { return May(all, end, one.share); });
  ForgetIdle(queue, next ? next->end : 0);
  return next;
}

// Turns are not charged, so nothing of an end need stay: whoever comes may name a new one each
// time.
void EndTurns::ForgetIdle(FairQueue<Waiting>& queue, std::uint64_t end) {
  if (!queue.Waits(end)) queue.Forget(end);
}

void EndTurns::Hold(std::uint64_t end, std::size_t size) {
  ++under_way_;
  Held& held = held_[end];
  ++held.turns;
  held.sizes += size;
}

bool EndTurns::Enter(std::uint64_t end, std::size_t together, const Share& share, Begin begin) {
  {
    const MutexLock lock(mu_);
    together_ = together;
    // None of an end overtakes another one of it.
    if (under_way_ >= together || queue_.Waits(end) || !May(held_, end, share)) {
      const bool waits = queue_.Add(end, {.begin = std::move(begin), .share = share, .end = end});
      ForgetIdle(queue_, end);
      return waits;
    }
    Hold(end, share.size);
  }
  begin(Turn(*this, end, share.size));
  return true;
}

void EndTurns::End(std::uint64_t end, std::size_t size) {
  std::vector<Waiting> begins;
  {
    const MutexLock lock(mu_);
    --under_way_;
    const auto held = held_.find(end);
    held->second.sizes -= size;
    if (--held->second.turns == 0) held_.erase(held);
    while (under_way_ < together_) {
      std::optional<Waiting> next = NextOf(queue_, held_);
      if (!next) break;
      Hold(next->end, next->share.size);
      begins.push_back(std::move(*next));
    }
  }
  for (Waiting& next : begins) next.begin(Turn(*this, next.end, next.share.size));
}

void EndTurns::Leave(std::uint64_t end, const void* who) {
  std::optional<Waiting>
      left;  // let go of without the lock: it may be the last that has its answer
  const MutexLock lock(mu_);
  left = queue_.TakeOut(end, [who](const Waiting& one) { return one.share.who == who; });
  ForgetIdle(queue_, end);
}

EndTurns::Ahead EndTurns::Before(std::uint64_t end, const void* who) const {
  Ahead ahead;
  const auto is_it = [who](const Waiting& one) { return who != nullptr && one.share.who == who; };
  const MutexLock lock(mu_);
  queue_.VisitBefore(end, is_it, [&ahead](const Waiting& one) {
    ++ahead.answers;
    ahead.tokens += one.share.tokens;
  });
  return ahead;
}

std::size_t EndTurns::waiting() const {
  const MutexLock lock(mu_);
  return queue_.size();
}

std::size_t EndTurns::ends() const {
  const MutexLock lock(mu_);
  return queue_.peers();
}

}  // namespace troupe
