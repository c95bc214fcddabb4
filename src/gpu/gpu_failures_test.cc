#include <functional>

#include "gpu/forwarding_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "gpu/probe.h"
#include "gpu/self_test.h"

namespace troupe {
namespace {

// Refuses one call of all those that may fail, as a device does that runs out of memory or
// vanishes; and knows whether copies, which use memory of the host, are still under way.
class FailingDevice final : public ForwardingGpu {
 public:
  FailingDevice(GpuDevice& sound, int call) : ForwardingGpu(sound), left_(call) {}

  bool has_failed() const { return left_ < 0; }

  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::Allocate(size);
  }
  Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::AllocateHost(size);
  }
  Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource& source, std::span<const std::string_view> kernels) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::Build(source, kernels);
  }
  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to, Bytes at,
                             std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return Seen(ForwardingGpu::CopyIn(lane, from, to, at, after));
  }
  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return Seen(ForwardingGpu::CopyOut(lane, from, at, to, after));
  }
  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::Launch(launch, after);
  }

  bool AllCopiesEnded() const {
    for (const GpuEventPtr& event : copies_) {
      if (!event->Ended()) return false;
    }
    return true;
  }

 private:
  Status Count() {
    if (left_-- != 0) return OkStatus();
    return Error(Code::kUnavailable, "the device is gone");
  }
  Result<GpuEventPtr> Seen(Result<GpuEventPtr> event) {
    if (event.ok()) copies_.push_back(*event);
    return event;
  }

  int left_;
  std::vector<GpuEventPtr> copies_;
};

class GpuFailures : public GpuTest {
 protected:
  // Lets each call that `work` makes fail in turn, the first of `skip` and every `step`-th one
  // after it; `work` must say so, and leave nothing under way that uses its memory.
  void ExpectEachIsAStatus(int step, const std::function<Status(GpuDevice&)>& work) {
    int failures = 0;
    for (int call = 0;; call += step) {
      FailingDevice failing(device(), call);
      const Status status = work(failing);
      EXPECT_TRUE(failing.AllCopiesEnded()) << "call " << call;
      if (!failing.has_failed()) {
        EXPECT_TRUE(status.ok()) << status.ToString();
        break;
      }
      ++failures;
      EXPECT_EQ(status.code(), Code::kUnavailable) << "call " << call << ": " << status.ToString();
    }
    EXPECT_GT(failures, 10);
  }
};

TEST_F(GpuFailures, InTheSelfTestAreItsStatusWhicheverCallFails) {
  const TensorType type = TensorType::kQ8_0;
  ExpectEachIsAStatus(1, [&](GpuDevice& failing) -> Status {
    TROUPE_ASSIGN_OR_RETURN(GpuKernels kernels, GpuKernels::Build(failing, {&type, 1}));
    return TestGpu(kernels, {&type, 1});
  });
}

TEST_F(GpuFailures, OfAnExpertAreItsStatusAndLeaveNothingUnderWay) {
  const TensorType type = TensorType::kQ8_0;
  ExpectEachIsAStatus(7, [&](GpuDevice& failing) -> Status {
    TROUPE_ASSIGN_OR_RETURN(GpuKernels kernels, GpuKernels::Build(failing, {&type, 1}));
    const GpuExpertShape shape{.types = {type, type, type}, .width = 256, .ff = 128};
    return ProbeGpuExpert(kernels, shape, MonotonicClock(), 400_KiB).status();
  });
}

TEST_F(GpuFailures, OfTheProbeAreItsStatus) {
  ExpectEachIsAStatus(37, [&](GpuDevice& failing) -> Status {
    TROUPE_ASSIGN_OR_RETURN(GpuKernels kernels, GpuKernels::Build(failing, {}));
    return ProbeGpu(kernels, MonotonicClock(), 64_KiB).status();
  });
}

}  // namespace
}  // namespace troupe
