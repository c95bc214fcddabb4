#include "server/pulse.h"

#include <utility>

namespace troupe {

Pulse::~Pulse() {
  {
    const MutexLock lock(mu_);
    ends_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
}

void Pulse::Add(Listener listener) {
  const MutexLock lock(mu_);
  if (ends_ || !thread_.Begin([this] { Main(); })) return;
  listeners_.push_back(std::move(listener));
  wake_.NotifyOne();
}

void Pulse::Main() {
  const auto every = std::chrono::duration_cast<std::chrono::nanoseconds>(every_);
  for (;;) {
    std::vector<Listener> now;
    {
      const MutexLock lock(mu_);
      while (!ends_ && listeners_.empty()) wake_.Wait(mu_);
      const auto next = std::chrono::steady_clock::now() + every;
      while (!ends_) {
        const std::chrono::nanoseconds left = next - std::chrono::steady_clock::now();
        if (left.count() <= 0) break;
        wake_.WaitFor(mu_, left.count());
      }
      if (ends_) return;
      now.swap(listeners_);
    }
    std::erase_if(now, [](const Listener& listener) { return !listener(); });
    const MutexLock lock(mu_);
    for (Listener& listener : now) listeners_.push_back(std::move(listener));
  }
}

}  // namespace troupe
