#include "troupe/interrupt.h"

#include <cstddef>

namespace troupe {
namespace {

volatile std::sig_atomic_t g_signal = 0;

void NoteSignal(int signal) { g_signal = signal; }

}  // namespace

InterruptGuard::InterruptGuard() {
  g_signal = 0;
  struct sigaction action = {};
  action.sa_handler = NoteSignal;
  // The second signal finds what was there before the first: the end of the program.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

int InterruptGuard::signal() { return g_signal; }

}  // namespace troupe
