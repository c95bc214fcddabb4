#include "gpu/probe.h"

#include <algorithm>
#include <limits>

namespace troupe {
namespace {

constexpr int kCopies = 5, kLaunches = 200;

double Since(const Clock& clock, Nanos start) {
  return static_cast<double>(std::max<Nanos>(1, clock.Now() - start)) * 1e-9;
}

// Bytes a second of the best copy that `copy` begins.
template <typename Copy>
Result<double> BestCopy(const Clock& clock, Bytes size, Copy&& copy) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kCopies; ++i) {
    const Nanos start = clock.Now();
    TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied, copy());
    TROUPE_RETURN_IF_ERROR(copied->Wait());
    best = std::min(best, Since(clock, start));
  }
  return AsDouble(size) / best;
}

}  // namespace

Result<GpuSpeeds> ProbeGpu(GpuKernels& kernels, const Clock& clock, Bytes copy) {
  GpuDevice& device = kernels.device();
  TROUPE_ASSIGN_OR_RETURN(const auto host, device.AllocateHost(copy));
  TROUPE_ASSIGN_OR_RETURN(const auto buffer, device.Allocate(copy));
  std::fill(host->bytes().begin(), host->bytes().end(), std::byte{0});  // its pages, too
  GpuSpeeds speeds;
  const auto copy_in = [&] {
    return device.CopyIn(GpuLane::kDemand, host->bytes(), *buffer, Bytes(0), {});
  };
  const auto copy_out = [&] {
    return device.CopyOut(GpuLane::kDemand, *buffer, Bytes(0), host->bytes(), {});
  };
  TROUPE_ASSIGN_OR_RETURN(speeds.in_bytes_per_second, BestCopy(clock, copy, copy_in));
  TROUPE_ASSIGN_OR_RETURN(speeds.out_bytes_per_second, BestCopy(clock, copy, copy_out));

  TROUPE_ASSIGN_OR_RETURN(const auto ups, device.Allocate(Bytes(sizeof(float))));
  const auto launch = [&] { return kernels.Combine(GateForm::kSilu, *buffer, *ups, 1, {}); };
  TROUPE_ASSIGN_OR_RETURN(GpuEventPtr done, launch());  // which may be compiled only now
  TROUPE_RETURN_IF_ERROR(done->Wait());
  Nanos start = clock.Now();
  for (int i = 0; i < kLaunches; ++i) {
    TROUPE_ASSIGN_OR_RETURN(done, launch());
  }
  TROUPE_RETURN_IF_ERROR(done->Wait());
  speeds.launch_seconds = Since(clock, start) / kLaunches;
  start = clock.Now();
  for (int i = 0; i < kLaunches; ++i) {
    TROUPE_ASSIGN_OR_RETURN(done, launch());
    TROUPE_RETURN_IF_ERROR(done->Wait());
  }
  speeds.round_trip_seconds = Since(clock, start) / kLaunches;
  return speeds;
}

}  // namespace troupe
