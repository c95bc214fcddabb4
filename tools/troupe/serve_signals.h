// The signals that `troupe serve` obeys: SIGTERM and SIGINT end it, SIGHUP reloads. One thread
// takes them; they are blocked in all that are begun while this lives, so that none of them dies of
// one.
#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace troupe {

class ServeSignals {
 public:
  enum class Order { kEnd, kReload };

  ServeSignals();
  ~ServeSignals();
  ServeSignals(const ServeSignals&) = delete;
  ServeSignals& operator=(const ServeSignals&) = delete;

  // Those that end come before one that reloads. Absent: none comes within that time.
  std::optional<Order> WaitFor(std::chrono::milliseconds time) const;
  // One that has come; absent: none has.
  std::optional<Order> Take() const;
  // Whether one that ends comes within that time. What reloads waits on.
  bool EndsWithin(std::chrono::milliseconds time) const;
  // Sends one that ends to this process. Any thread.
  void End() const;
  // Whether one that ends has come; it is left to be taken.
  bool EndIsPending() const;

 private:
  Order OrderOf(int signal) const;

  sigset_t all_ = {}, ends_ = {}, before_ = {};
  const bool in_terminal_;
};

}  // namespace troupe
