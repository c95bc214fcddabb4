// All devices that the machine's drivers have, each card once: a card of NVIDIA's may be reached
// through CUDA and through OpenCL. Which of them somebody means, and whether it may compute, is
// usable_gpu.h's matter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// A place in what ListCudaDevices or ListOpenClDevices gives.
struct GpuWay {
  GpuApi api = GpuApi::kOpenCl;
  std::size_t place = 0;
  bool operator==(const GpuWay&) const = default;
};

struct ListedGpu {
  GpuInfo info;              // by the first way
  std::vector<GpuWay> ways;  // to the same card: CUDA's before OpenCL's
};

// What CUDA has, then what OpenCL has beside. Both name a card's place on the bus; where one of
// them does not tell, a device of NVIDIA's OpenCL is the card of that name, each card for one of
// them.
std::vector<ListedGpu> EachCardOnce(std::span<const GpuInfo> cuda, std::span<const GpuInfo> opencl);

// The same, of what the two say. At least one, with what is wrong with a driver of CUDA that is
// here; kNotFound: there is none, and why of both.
Result<std::vector<ListedGpu>> ListingOf(const Result<std::vector<GpuInfo>>& cuda,
                                         const Result<std::vector<GpuInfo>>& opencl);

// Of this machine.
Result<std::vector<ListedGpu>> FindGpus();

Result<std::unique_ptr<GpuDevice>> OpenGpu(const GpuWay& way);

}  // namespace troupe
