#include "troupe/serve_signals.h"

#include <unistd.h>

namespace troupe {
namespace {

timespec SpecOf(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1000, .tv_nsec = time.count() % 1000 * 1'000'000};
}

}  // namespace

ServeSignals::ServeSignals() : in_terminal_(::isatty(STDERR_FILENO) == 1) {
  sigemptyset(&ends_);
  sigaddset(&ends_, SIGTERM);
  sigaddset(&ends_, SIGINT);
  all_ = ends_;
  sigaddset(&all_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &all_, &before_);
}

// What has come and was not taken would end the program as soon as it is let through.
ServeSignals::~ServeSignals() {
  while (Take()) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

// A terminal that is closed says SIGHUP as well, and means the end.
ServeSignals::Order ServeSignals::OrderOf(int signal) const {
  const bool terminal_gone = in_terminal_ && ::isatty(STDERR_FILENO) == 0;
  return signal == SIGHUP && !terminal_gone ? Order::kReload : Order::kEnd;
}

std::optional<ServeSignals::Order> ServeSignals::WaitFor(std::chrono::milliseconds time) const {
  if (const std::optional<Order> order = Take()) return order;
  const timespec longest = SpecOf(time);
  const int signal = sigtimedwait(&all_, nullptr, &longest);
  if (signal <= 0) return std::nullopt;
  return OrderOf(signal);
}

std::optional<ServeSignals::Order> ServeSignals::Take() const {
  const timespec at_once = {};
  if (sigtimedwait(&ends_, nullptr, &at_once) > 0) return Order::kEnd;
  const int signal = sigtimedwait(&all_, nullptr, &at_once);
  if (signal <= 0) return std::nullopt;
  return OrderOf(signal);
}

bool ServeSignals::EndsWithin(std::chrono::milliseconds time) const {
  const timespec longest = SpecOf(time);
  return sigtimedwait(&ends_, nullptr, &longest) > 0;
}

void ServeSignals::End() const { ::kill(::getpid(), SIGTERM); }

bool ServeSignals::EndIsPending() const {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1;
}

}  // namespace troupe
