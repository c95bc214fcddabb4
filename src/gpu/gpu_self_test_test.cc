#include "gpu/forwarding_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "gpu/self_test.h"
#include "quant/random_rows.h"

namespace troupe {
namespace {

// A device whose answers of one size are wrong by one bit, as if it rounded otherwise somewhere.
class BentDevice final : public ForwardingGpu {
 public:
  BentDevice(GpuDevice& sound, std::size_t bent_size, std::size_t bent_time)
      : ForwardingGpu(sound), bent_size_(bent_size), bent_time_(bent_time) {}

  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    TROUPE_ASSIGN_OR_RETURN(GpuEventPtr copied, ForwardingGpu::CopyOut(lane, from, at, to, after));
    TROUPE_RETURN_IF_ERROR(copied->Wait());
    if (to.size() == bent_size_ && bent_time_-- == 0) to[to.size() / 2] ^= std::byte{1};
    return copied;
  }

 private:
  std::size_t bent_size_, bent_time_;
};

class GpuSelfTest : public GpuTest {
 protected:
  // What the test says of a device that bends the copy number `time` of `size` bytes.
  Status Bent(std::size_t size, std::size_t time) {
    BentDevice bent(device(), size, time);
    const TensorType types[] = {TensorType::kQ4_K, TensorType::kF16};
    GpuKernels kernels = GpuKernels::Build(bent, types).value();
    return TestGpu(kernels, types);
  }
};

TEST_F(GpuSelfTest, PassesADeviceThatComputesAsTheProcessorDoesInEveryType) {
  const std::vector<TensorType> types = AllTypes();
  GpuKernels kernels = GpuKernels::Build(device(), types).value();
  const Status status = TestGpu(kernels, types);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// 9 rows of 768 in 8 bits, 512 gates in each of three forms, 9 products of 19 rows.
constexpr std::size_t kCodesSize = 9 * 24 * 48, kGatesSize = 512 * 4, kProductsSize = 9 * 19 * 4;

TEST_F(GpuSelfTest, RefusesADeviceWithOneWrongBitAndSaysWhere) {
  const auto expect_refusal = [](const Status& status, std::string_view what) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    EXPECT_NE(status.message().find("is not used"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find(what), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos) << status.message();
  };
  expect_refusal(Bent(kCodesSize, 0), "activations");
  expect_refusal(Bent(kGatesSize, 0), "gate");
  expect_refusal(Bent(kGatesSize, 2), "gate");
  expect_refusal(Bent(kProductsSize, 0), "Q4_K");
  expect_refusal(Bent(kProductsSize, 1), "F16");
}

TEST_F(GpuSelfTest, DoesNotMindADeviceThatBendsNothing) {
  EXPECT_TRUE(Bent(kProductsSize, 2).ok());  // a copy that the test does not make
}

}  // namespace
}  // namespace troupe
