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

TEST_F(GpuProbe, DividesARoundOfExpertsByTheirNumberAndFurtherRowsByTheirs) {
  const std::array types = {TensorType::kQ8_0, TensorType::kQ4_0, TensorType::kF16};
  GpuKernels kernels = GpuKernels::Build(device(), types).value();
  const GpuExpertShape shape{.types = types, .width = 64, .ff = 32};
  // Panels of 64 columns of 32 rows in 8 and in 4 bits, and of 32 columns of 64 halves; twice.
  const Bytes expert(32 * 2 * 34 + 32 * 2 * 18 + 64 * 32 * 2);
  const GpuExpertSeconds two =
      ProbeGpuExpert(kernels, shape, CountingClock(), 2 * expert + Bytes(100)).value();
  EXPECT_DOUBLE_EQ(two.first_row, 1e-6 / 2);
  EXPECT_DOUBLE_EQ(two.further_row, 0);  // each look at the clock takes as long
  const GpuExpertSeconds one = ProbeGpuExpert(kernels, shape, CountingClock(), 1_B).value();
  EXPECT_DOUBLE_EQ(one.first_row, 1e-6);
  GpuExpertShape without_up = shape;
  without_up.takes_up = false;
  const Bytes smaller = expert - Bytes(32 * 2 * 18);
  EXPECT_DOUBLE_EQ(
      ProbeGpuExpert(kernels, without_up, CountingClock(), 2 * smaller + Bytes(100))->first_row,
      1e-6 / 2);
}

}  // namespace
}  // namespace troupe
