// The devices of all servers: each does what it is given in the order in which it comes, at its own
// speed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "placement/problem.h"
#include "sim/expert_work.h"

namespace troupe {

class Devices {
 public:
  explicit Devices(const PlacementProblem& problem) {
    for (const PlacementServer& server : problem.servers) {
      first_.push_back(static_cast<DeviceIndex>(devices_.size()));
      for (const PlacementDevice& device : server.devices) {
        devices_.push_back(
            {.speed = device.speed, .load_bytes_per_second = device.load_bytes_per_second});
      }
    }
    first_.push_back(static_cast<DeviceIndex>(devices_.size()));
  }

  // When the device will have done `seconds` of work that comes now.
  double Occupy(DeviceIndex device, double now, double seconds) {
    Device& at = devices_[device];
    at.free_at = std::max(at.free_at, now) + seconds;
    at.busy += seconds;
    return at.free_at;
  }
  // The one of a server that has done first what it has to do.
  DeviceIndex Idlest(std::uint32_t server) const {
    const auto own = std::span(devices_).subspan(first_[server], CountOf(server));
    const auto idlest = std::ranges::min_element(own, {}, &Device::free_at);
    return first_[server] + static_cast<DeviceIndex>(idlest - own.begin());
  }
  // Those of a server have nothing to do any more.
  void Forget(std::uint32_t server, double now) {
    for (Device& device : std::span(devices_).subspan(first_[server], CountOf(server))) {
      device.free_at = now;
    }
  }
  double BusySeconds(std::uint32_t server) const {
    double busy = 0;
    for (const Device& device : std::span(devices_).subspan(first_[server], CountOf(server))) {
      busy += device.busy;
    }
    return busy;
  }

  double speed(DeviceIndex device) const { return devices_[device].speed; }
  double LoadSeconds(DeviceIndex device, std::uint64_t bytes) const {
    return static_cast<double>(bytes) / devices_[device].load_bytes_per_second;
  }

 private:
  struct Device {
    double speed = 1, load_bytes_per_second = 1;
    double free_at = 0;
    double busy = 0;
  };

  std::size_t CountOf(std::uint32_t server) const { return first_[server + 1] - first_[server]; }

  std::vector<Device> devices_;
  std::vector<DeviceIndex> first_;  // by server, and one past the last
};

}  // namespace troupe
