// How fast a device is reached: copies both ways and the start of work. What a tier in its memory
// costs is made of these. Takes a few tenths of a second; nothing else should run meanwhile.
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "gpu/kernels.h"

namespace troupe {

struct GpuSpeeds {
  double in_bytes_per_second = 0;   // from host memory that the device reaches (GpuHostMemory)
  double out_bytes_per_second = 0;  // the best of several copies, as the next one
  double launch_seconds = 0;        // of a small kernel, one handed in behind the other
  double round_trip_seconds = 0;    // the same, each waited for before the next
};

inline constexpr Bytes kGpuProbeCopy = 64_MiB;

// kResourceExhausted where the device or the host lacks room for a copy of that size.
Result<GpuSpeeds> ProbeGpu(GpuKernels& kernels, const Clock& clock, Bytes copy = kGpuProbeCopy);

}  // namespace troupe
