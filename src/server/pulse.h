// Tells those whose clients wait in silence that time has passed: clients and proxies hang up on
// streams that are silent for long. Its thread begins with the first listener. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "base/mutex.h"
#include "server/late_thread.h"

namespace troupe {

class Pulse {
 public:
  // Gives false when it need not be told again. Called on the pulse's thread, where nothing may
  // wait.
  using Listener = std::function<bool()>;

  explicit Pulse(std::chrono::milliseconds every) : every_(every) {}
  ~Pulse();
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  // Without a thread for it, it is never told: a stream that is silent is no worse than before.
  void Add(Listener listener);

 private:
  void Main();

  const std::chrono::milliseconds every_;
  Mutex mu_;
  CondVar wake_;
  std::vector<Listener> listeners_ TROUPE_GUARDED_BY(mu_);
  bool ends_ TROUPE_GUARDED_BY(mu_) = false;
  LateThread thread_;  // begun under mu_
};

}  // namespace troupe
