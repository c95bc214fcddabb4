// Work that somebody has and must not wait for: done later, one piece after the other, by a thread
// that begins with the first. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "base/mutex.h"
#include "server/late_thread.h"

namespace troupe {

struct ErrandCounters {
  std::uint64_t done = 0;
  double seconds = 0;  // that they took
};

class Errands {
 public:
  using Errand = std::function<void()>;

  Errands() = default;
  // Does what is left.
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // Without a thread for it, it is done at once, by whoever has it.
  void Add(Errand errand);
  // Until all are done that were there, from another thread than theirs.
  void Wait();
  ErrandCounters counters() const;

 private:
  bool HasThread() TROUPE_REQUIRES(mu_);
  void Main();
  void Do(Errand errand);

  mutable Mutex mu_;
  CondVar wake_, idle_;
  std::deque<Errand> waiting_ TROUPE_GUARDED_BY(mu_);
  bool busy_ TROUPE_GUARDED_BY(mu_) = false;
  bool ends_ TROUPE_GUARDED_BY(mu_) = false;
  ErrandCounters counters_ TROUPE_GUARDED_BY(mu_);
  LateThread thread_;  // begun under mu_
};

}  // namespace troupe
