// A device that computes nothing and notes what it is handed in, with what each piece of work waits
// for: tests of orders and checks need no driver.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.h"

namespace troupe {

class RecordingGpu final : public GpuDevice {
 public:
  struct Work {
    std::string what;  // "in", "out" or a kernel's name
    GpuLane lane = GpuLane::kCompute;
    std::vector<GpuEventPtr> after;
    GpuEventPtr done;

    bool WaitsFor(const GpuEventPtr& event) const {
      return std::find(after.begin(), after.end(), event) != after.end();
    }
  };

  std::vector<Work> works;
  int refuse_after =
      -1;  // pieces of work that are taken before one is refused; negative: none is refused

  const GpuInfo& info() const override { return info_; }
  Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) override {
    return std::unique_ptr<GpuBuffer>(std::make_unique<Buffer>(size));
  }
  Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) override {
    return std::unique_ptr<GpuHostMemory>(std::make_unique<HostMemory>(size));
  }
  Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource&, std::span<const std::string_view> names) override {
    std::vector<std::unique_ptr<GpuKernel>> kernels;
    for (const std::string_view name : names) kernels.push_back(std::make_unique<Kernel>(name));
    return kernels;
  }
  Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte>, GpuBuffer&, Bytes,
                             std::span<const GpuEventPtr> after) override {
    return Note("in", lane, after);
  }
  Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer&, Bytes, std::span<std::byte>,
                              std::span<const GpuEventPtr> after) override {
    return Note("out", lane, after);
  }
  Result<GpuEventPtr> Launch(const GpuLaunch& launch, std::span<const GpuEventPtr> after) override {
    return Note(static_cast<const Kernel*>(launch.kernel)->name, GpuLane::kCompute, after);
  }

 private:
  struct Buffer final : GpuBuffer {
    explicit Buffer(Bytes size) : GpuBuffer(size) {}
  };
  struct HostMemory final : GpuHostMemory {
    explicit HostMemory(Bytes size) : memory(size.count()) {}
    std::span<std::byte> bytes() override { return memory; }
    std::vector<std::byte> memory;
  };
  struct Kernel final : GpuKernel {
    explicit Kernel(std::string_view of) : name(of) {}
    std::string name;
  };
  struct Event final : GpuEvent {
    bool Ended() const override { return true; }
    Status Wait() override { return OkStatus(); }
  };

  Result<GpuEventPtr> Note(std::string what, GpuLane lane, std::span<const GpuEventPtr> after) {
    if (refuse_after == static_cast<int>(works.size())) {
      return Error(Code::kUnavailable, "the device is gone");
    }
    works.push_back(
        {std::move(what), lane, {after.begin(), after.end()}, std::make_shared<Event>()});
    return works.back().done;
  }

  GpuInfo info_{.name = "a device that computes nothing"};
};

}  // namespace troupe
