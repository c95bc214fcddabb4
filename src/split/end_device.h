// What the device of an end has, looked at while it serves: its processors and power (DeviceWatch),
// and the memory that the cache of experts follows (MemoryWatch). Looked at by one thread.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "split/device_watch.h"
#include "split/memory_watch.h"

namespace troupe {

class EndDevice {
 public:
  // Absent: power and load are not looked at.
  explicit EndDevice(const std::optional<DeviceWatch::Options>& device);

  // Null: the cache stays as it was planned.
  void Follow(std::unique_ptr<MemoryWatch> memory) { memory_ = std::move(memory); }

  // Often: what is due is done.
  void OnTime(Nanos now);
  // Until memory is due, at most `longest`.
  Nanos DueIn(Nanos now, Nanos longest) const;

  // By which what passes take here is weighed.
  double power() const { return report_ ? report_->battery_power : 1; }
  // Of the last look; absent: nothing is known.
  const std::optional<DeviceReport>& report() const { return report_; }
  std::optional<MemoryState> memory() const;

 private:
  std::optional<DeviceWatch> watch_;
  std::unique_ptr<MemoryWatch> memory_;
  std::optional<DeviceReport> report_;
  Nanos look_at_ = 0;
};

}  // namespace troupe
