#include "gpu/gpu_for_test.h"
#include "gpu/probe.h"

namespace troupe {
namespace {

class GpuProbe : public GpuTest {};

// Each look takes as long as the last, so that what is measured is known.
class CountingClock final : public Clock {
 public:
  Nanos Now() const override { return now_ += 1000; }

 private:
  mutable Nanos now_ = 0;
};

TEST_F(GpuProbe, DividesWhatItCopiedAndLaunchedByTheTimeThatPassed) {
  GpuKernels kernels = GpuKernels::Build(device(), {}).value();
  const GpuSpeeds speeds = ProbeGpu(kernels, CountingClock(), 1_MiB).value();
  EXPECT_DOUBLE_EQ(speeds.in_bytes_per_second, AsDouble(1_MiB) / 1e-6);
  EXPECT_DOUBLE_EQ(speeds.out_bytes_per_second, AsDouble(1_MiB) / 1e-6);
  EXPECT_DOUBLE_EQ(speeds.launch_seconds, 1e-6 / 200);
  EXPECT_DOUBLE_EQ(speeds.round_trip_seconds, 1e-6 / 200);
}

TEST_F(GpuProbe, SaysThatADeviceLacksTheRoom) {
  GpuKernels kernels = GpuKernels::Build(device(), {}).value();
  EXPECT_EQ(ProbeGpu(kernels, MonotonicClock(), Bytes(std::uint64_t{1} << 60)).status().code(),
            Code::kResourceExhausted);
}

}  // namespace
}  // namespace troupe
