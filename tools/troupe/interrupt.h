// What ends a command in good order, with its figures and whole files: Ctrl-C, SIGTERM (`kill`,
// systemd, `docker stop`) and SIGHUP (the terminal was closed). The first signal is noted; a second
// one ends the program as ever.
#pragma once

#include <array>
#include <csignal>

namespace troupe {

// While it lives. One at a time. Signals that whoever started the program has it ignore (nohup)
// stay ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted() { return signal() != 0; }
  // The one that came last, since the last guard began; 0: none.
  static int signal();

 private:
  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace troupe
