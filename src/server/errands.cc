#include "server/errands.h"

#include <exception>
#include <utility>

#include "base/clock.h"

namespace troupe {

Errands::~Errands() {
  {
    const MutexLock lock(mu_);
    ends_ = true;
    wake_.NotifyOne();
  }
  thread_.Join();
}

void Errands::Add(Errand errand) {
  {
    const MutexLock lock(mu_);
    if (HasThread()) {
      waiting_.push_back(std::move(errand));
      wake_.NotifyOne();
      return;
    }
  }
  Do(std::move(errand));
}

bool Errands::HasThread() {
  return !ends_ && thread_.Begin([this] { Main(); });
}

void Errands::Wait() {
  const MutexLock lock(mu_);
  while (busy_ || !waiting_.empty()) idle_.Wait(mu_);
}

ErrandCounters Errands::counters() const {
  const MutexLock lock(mu_);
  return counters_;
}

void Errands::Do(Errand errand) {
  const Stopwatch watch;
  try {
    errand();
  } catch (const std::exception&) {
    // Memory that there is not, say. What it holds is let go of: a reply answers with 500 then.
  }
  errand = nullptr;
  const double seconds = watch.Seconds();
  const MutexLock lock(mu_);
  ++counters_.done;
  counters_.seconds += seconds;
}

void Errands::Main() {
  for (;;) {
    Errand next;
    {
      const MutexLock lock(mu_);
      busy_ = false;
      if (waiting_.empty()) idle_.NotifyAll();
      while (waiting_.empty() && !ends_) wake_.Wait(mu_);
      if (waiting_.empty()) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      busy_ = true;
    }
    Do(std::move(next));
  }
}

}  // namespace troupe
