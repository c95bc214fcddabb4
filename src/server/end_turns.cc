#include "server/end_turns.h"

#include <algorithm>

namespace troupe {

std::size_t EndTurns::TurnsOf(const HeldBy& all, std::uint64_t end) {
  const auto found = all.find(end);
  return found == all.end() ? 0 : found->second.turns;
}

bool EndTurns::May(const HeldBy& all, std::uint64_t end, const Share& share) {
  const auto found = all.find(end);
  if (found == all.end()) return true;
  const Held& held = found->second;
  return held.turns < share.turns && held.sizes < share.sizes &&
         share.size <= share.sizes - held.sizes;
}

std::optional<EndTurns::Waiting> EndTurns::NextOf(FairQueue<Waiting>& queue, const HeldBy& all,
                                                  Counters& counters) {
  std::size_t most = 0;  // turns of one that might have come
  std::optional<Waiting> next =
      queue.Next([&all](std::uint64_t end, const Waiting& one) { return May(all, end, one.share); },
                 [&all, &most](std::uint64_t end) {
                   const std::size_t turns = TurnsOf(all, end);
                   most = std::max(most, turns);
                   return turns;
                 });
  if (!next) return next;
  ForgetIdle(queue, next->end);
  ++counters.later;
  if (TurnsOf(all, next->end) < most) ++counters.to_fewer;
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
    queue_.HadTurn(end);
    ++counters_.at_once;
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
      std::optional<Waiting> next = NextOf(queue_, held_, counters_);
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

EndTurns::Ahead EndTurns::BeforeOf(const FairQueue<Waiting>& queue, const HeldBy& all,
                                   std::uint64_t end, const void* who) {
  Ahead ahead;
  queue.VisitBefore(
      end, [who](const Waiting& one) { return who != nullptr && one.share.who == who; },
      [&ahead](const Waiting& one) {
        ++ahead.answers;
        ahead.tokens += one.share.tokens;
      },
      [&all](std::uint64_t other) { return TurnsOf(all, other); });
  return ahead;
}

EndTurns::Ahead EndTurns::Before(std::uint64_t end, const void* who) const {
  const MutexLock lock(mu_);
  return BeforeOf(queue_, held_, end, who);
}

EndTurns::Counters EndTurns::counters() const {
  const MutexLock lock(mu_);
  return counters_;
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
