// A device that passes every call on to another one: what a test changes of it, it overrides.
#pragma once

#include "gpu/device.h"

namespace troupe {

class ForwardingGpu : public GpuDevice {
 public:
  explicit ForwardingGpu(GpuDevice& to) : to_(to) {}

  const GpuInfo& info() const override { return to_.info(); }
  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override { return to_.Allocate(size); }
  Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) override {
    return to_.AllocateHost(size);
  }
  Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource& source, std::span<const std::string_view> kernels) override {
    return to_.Build(source, kernels);
  }
  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to, Bytes at,
                             std::span<const GpuEventPtr> after) override {
    return to_.CopyIn(lane, from, to, at, after);
  }
  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                              std::span<std::byte> to,
                              std::span<const GpuEventPtr> after) override {
    return to_.CopyOut(lane, from, at, to, after);
  }
  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    return to_.Launch(launch, after);
  }

 private:
  GpuDevice& to_;
};

}  // namespace troupe
