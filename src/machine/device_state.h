// What this machine has to give at the moment, as EC2MoE's Eq. 2 lists it: processor time, memory,
// and power; the link is measured by who uses it. Read from /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "machine/machine_memory.h"

namespace troupe {

// Sums since the machine started, in ticks, over all processors.
struct ProcessorTime {
  std::uint64_t all = 0, idle = 0;
  std::uint64_t own = 0;  // of this process

  bool operator==(const ProcessorTime&) const = default;
};

struct DeviceState {
  double processors = 0;  // that this process may use: those of its cgroup, which may be a part
  ProcessorTime time;
  MachineMemory memory;
  std::optional<double> battery;  // 0 to 1, of all that it has; absent: none
  bool discharging = false;
  // Of the whole package, and the most it could be told; absent: nothing limits it that is known.
  std::optional<double> power_cap_watts, power_most_watts;
};

// `root` is where /proc and /sys are looked for: a test's folder, else empty. `cpus`: that this
// process may run on.
Result<DeviceState> ReadDeviceState(std::uint32_t cpus, const std::string& root = "");

// Processors that nobody else used between two looks, of `cpus`; those looks may have been so close
// that nothing can be said.
std::optional<double> FreeProcessors(const ProcessorTime& before, const ProcessorTime& now,
                                     std::uint32_t cpus);

}  // namespace troupe
