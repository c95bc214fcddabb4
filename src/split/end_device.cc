#include "split/end_device.h"

#include <algorithm>

namespace troupe {

EndDevice::EndDevice(const std::optional<DeviceWatch::Options>& device)
    : watch_(device ? std::make_optional<DeviceWatch>(*device) : std::nullopt) {}

void EndDevice::OnTime(Nanos now) {
  constexpr Nanos kLookEvery = 3'000'000'000;
  if (memory_ != nullptr) memory_->OnTime(now);
  if (!watch_ || now < look_at_) return;
  look_at_ = now + kLookEvery;
  if (const std::optional<MemoryState> state = memory()) {
    watch_->set_memory(state->wanted < state->use.most
                           ? std::make_optional(state->wanted * state->use.slot)
                           : std::nullopt);
  }
  Result<DeviceReport> report = watch_->Look(now);
  if (report.ok()) report_ = *std::move(report);  // else nothing is known, and so nothing changes
}

Nanos EndDevice::DueIn(Nanos now, Nanos longest) const {
  return memory_ == nullptr ? longest : std::min(memory_->DueIn(now), longest);
}

std::optional<MemoryState> EndDevice::memory() const {
  if (memory_ == nullptr) return std::nullopt;
  return memory_->State();
}

}  // namespace troupe
