// Time as the engine sees it: a monotonic count of nanoseconds, behind an interface so that tests
// and the simulator can move it by hand. Policies never hold a clock: time comes in as an argument.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

using Nanos = std::int64_t;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos Now() const = 0;
};

class MonotonicClock final : public Clock {
 public:
  Nanos Now() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

class ManualClock final : public Clock {
 public:
  Nanos Now() const override { return now_; }
  void Advance(Nanos by) { now_ += by; }

 private:
  Nanos now_ = 0;
};

class Stopwatch {
 public:
  double Seconds() const { return static_cast<double>(clock_.Now() - start_) * 1e-9; }

 private:
  MonotonicClock clock_;
  Nanos start_ = clock_.Now();
};

}  // namespace troupe
