// How fast a device is reached, copies both ways and the start of work, and how fast it computes
// experts. What a tier in its memory costs is made of these. Each takes a few tenths of a second,
// unless one expert takes longer than that; nothing else should run meanwhile.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/tensor_type.h"
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

// An expert's matrices: gate, up and down.
struct GpuExpertShape {
  std::array<TensorType, 3> types = {};
  std::uint32_t width = 0;
  std::uint32_t ff = 0;
  bool takes_up = true;  // false: it has no up
};

struct GpuExpertSeconds {
  double first_row = 0;  // of experts handed in one behind the other, each with other weights
  double further_row = 0;
};

// The kernels were built for these types. The weights take up to `memory`, so that no cache has
// them all.
Result<GpuExpertSeconds> ProbeGpuExpert(GpuKernels& kernels, const GpuExpertShape& shape,
                                        const Clock& clock, Bytes memory = 2 * kGpuProbeCopy);

}  // namespace troupe
