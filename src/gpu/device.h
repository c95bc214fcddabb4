// A device with memory of its own that runs kernels, as the rest of the folder sees it: buffers,
// copies, launches and events. opencl.h and cuda.h open one, listing.h says which there are. What
// the kernels compute is not its matter: kernels.h.
//
// Work is handed in and done later. A lane does its work in the order in which it was handed in;
// lanes know of each other only by the events that work is told to wait for. What work uses must
// live until its event has ended. One thread at a time may call a device and what belongs to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace troupe {

enum class GpuApi : std::uint8_t { kOpenCl, kCuda };

// As NVIDIA's OpenCL calls itself; its devices are CUDA's.
inline constexpr std::string_view kNvidiaPlatform = "NVIDIA CUDA";

struct GpuInfo {
  std::string name;      // "NVIDIA GeForce RTX 3060"
  std::string platform;  // whose driver: "NVIDIA CUDA"
  std::string driver;    // its version
  Bytes memory;
  Bytes largest_buffer;
  // A driver that computes on the processor, as PoCL does: good for tests, useless beside kernels.
  bool is_processor = false;
  // Its memory is the machine's own, as a graphics unit's within the processor.
  bool shares_memory = false;
  bool has_doubles = false;  // rounded as IEEE says
  GpuApi api = GpuApi::kOpenCl;
  std::string bus_place;  // "0000:01:00.0" where its driver tells, else empty
  // Of one that is reached by OpenCL: why a driver of CUDA that is here gives no device, else
  // empty.
  std::string why_no_cuda = {};
};

enum class GpuLane : std::uint8_t { kCompute, kDemand, kPrefetch };  // the last two: copies
inline constexpr std::size_t kGpuLanes = 3;

class GpuBuffer {
 public:
  virtual ~GpuBuffer() = default;
  Bytes size() const { return size_; }

 protected:
  explicit GpuBuffer(Bytes size) : size_(size) {}

 private:
  Bytes size_;
};

// Memory of the host that the device reaches without a copy on the way: what copies are fastest
// from and to.
class GpuHostMemory {
 public:
  virtual ~GpuHostMemory() = default;
  virtual std::span<std::byte> bytes() = 0;
};

class GpuKernel {
 public:
  virtual ~GpuKernel() = default;
};

// The end of some work.
class GpuEvent {
 public:
  virtual ~GpuEvent() = default;
  virtual bool Ended() const = 0;  // well or badly
  virtual Status Wait() = 0;       // an error where the work, or what it had to wait for, failed
};
using GpuEventPtr = std::shared_ptr<GpuEvent>;

// The text of a program. A device that takes compiled kernels knows them by the name.
struct GpuSource {
  std::string name;
  std::string text;
};

// A kernel's argument; a null buffer is a null pointer there.
using GpuArgument = std::variant<const GpuBuffer*, std::uint32_t, std::uint64_t>;

struct GpuLaunch {
  GpuKernel* kernel = nullptr;
  std::vector<GpuArgument> arguments;
  std::array<std::uint32_t, 2> groups = {1, 1};
  std::uint32_t group_size = 1;  // items of a group, all in its first dimension
};

class GpuDevice {
 public:
  virtual ~GpuDevice() = default;  // waits for all work

  virtual const GpuInfo& info() const = 0;

  // kResourceExhausted where the device has no such room. Contents are unspecified.
  virtual Result<std::unique_ptr<GpuBuffer>> Allocate(Bytes size) = 0;
  virtual Result<std::unique_ptr<GpuHostMemory>> AllocateHost(Bytes size) = 0;

  // The kernels of these names in a program, in their order.
  virtual Result<std::vector<std::unique_ptr<GpuKernel>>> Build(
      const GpuSource& source, std::span<const std::string_view> kernels) = 0;

  // Of these, a call that gives an error has begun nothing.
  virtual Result<GpuEventPtr> CopyIn(GpuLane lane, std::span<const std::byte> from, GpuBuffer& to,
                                     Bytes at, std::span<const GpuEventPtr> after) = 0;
  virtual Result<GpuEventPtr> CopyOut(GpuLane lane, const GpuBuffer& from, Bytes at,
                                      std::span<std::byte> to,
                                      std::span<const GpuEventPtr> after) = 0;
  virtual Result<GpuEventPtr> Launch(const GpuLaunch& launch,
                                     std::span<const GpuEventPtr> after) = 0;
};

}  // namespace troupe
