// A device that works until a test says otherwise: then calls fail, as of a card that has vanished,
// or do not return, as of a driver that hangs.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "gpu/forwarding_gpu_for_test.h"
#include "gpu/gpu_for_test.h"
#include "gpu/usable_gpu.h"

namespace troupe {

struct GpuFaults {
  std::atomic<int> work_left = -1;     // pieces of work that are taken; negative: any number
  std::atomic<bool> hangs = false;     // in place of failing
  std::atomic<int> buffers_left = -1;  // that it has room for
  std::atomic<bool> open_hangs = false, allocation_hangs = false;
  std::atomic<int> gone = 0;  // devices that were let go of

  static void HangIn(const std::atomic<bool>& call) {
    while (call) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool WaitUntilGone(int devices = 1) const {
    for (int i = 0; i < 60'000 && gone < devices; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return gone >= devices;
  }
};

class FaultyGpu final : public ForwardingGpu {
 public:
  FaultyGpu(std::unique_ptr<GpuDevice> sound, std::shared_ptr<GpuFaults> faults)
      : ForwardingGpu(*sound), sound_(std::move(sound)), faults_(std::move(faults)) {}
  ~FaultyGpu() override {
    sound_.reset();
    ++faults_->gone;
  }

  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override {
    GpuFaults::HangIn(faults_->allocation_hangs);
    if (faults_->buffers_left == 0) return Error(Code::kResourceExhausted, "the device is full");
    if (faults_->buffers_left > 0) --faults_->buffers_left;
    return ForwardingGpu::Allocate(size);
  }
  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to, Bytes at,
                             std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::CopyIn(lane, from, to, at, after);
  }
  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::CopyOut(lane, from, at, to, after);
  }
  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    TROUPE_RETURN_IF_ERROR(Count());
    return ForwardingGpu::Launch(launch, after);
  }

 private:
  Status Count() {
    if (faults_->work_left < 0) return OkStatus();
    if (faults_->work_left > 0) {
      --faults_->work_left;
      return OkStatus();
    }
    GpuFaults::HangIn(faults_->hangs);
    return Error(Code::kUnavailable, "the device is gone");
  }

  std::unique_ptr<GpuDevice> sound_;
  std::shared_ptr<GpuFaults> faults_;
};

// The tests' device with such faults; null where none opens.
inline std::unique_ptr<TestedGpu> OpenFaultyGpu(std::span<const TensorType> types,
                                                std::shared_ptr<GpuFaults> faults) {
  auto opened = OpenGpuForTest();
  if (!opened.ok()) return nullptr;
  auto gpu = std::make_unique<TestedGpu>();
  gpu->device = std::make_unique<FaultyGpu>(std::move(opened).value(), std::move(faults));
  gpu->kernels = std::make_unique<GpuKernels>(GpuKernels::Build(*gpu->device, types).value());
  return gpu;
}

}  // namespace troupe
