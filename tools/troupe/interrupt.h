// Ctrl-C while an answer is being given: the first one ends the answer in good order, with its
// figures and whole files; a second one ends the program as ever.
#pragma once

#include <csignal>

namespace troupe {

// While it lives. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();

 private:
  struct sigaction before_ = {};
};

}  // namespace troupe
