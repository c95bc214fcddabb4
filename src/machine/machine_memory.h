// How much memory this process may still take: what the machine has free, or what the limits of its
// cgroup leave (v1 and v2), whichever is less.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

struct MachineMemory {
  Bytes available;    // without pushing others out; page cache that can be dropped counts as free
  std::string limit;  // what sets it: "the machine", or a cgroup's folder
  Bytes whole = {};   // of which that is left: the machine's memory, or the cgroup's limit
};

// `root` is where /proc and /sys are looked for: a test's folder, else empty.
Result<MachineMemory> ReadMachineMemory(const std::string& root = "");

// What a process leaves to other programs if nobody said how much it may take. They go on needing
// memory while it runs: a sixteenth of what is free, or 256 MiB if that is more, but no more than a
// quarter, as small containers hold little else.
Bytes ReserveForOthers(const MachineMemory& memory);
// All but that.
Bytes DefaultBudget(const MachineMemory& memory);

}  // namespace troupe
