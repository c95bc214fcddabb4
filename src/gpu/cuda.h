// NVIDIA's cards through CUDA's driver API, by kernels that nvcc compiled when the program was
// built. A build without nvcc has none, and says so.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// All of them, in the order in which the driver numbers them. kNotFound where there can be none: a
// build without nvcc, or no driver. kUnavailable where a driver gives none: it does not start,
// lacks functions, or has no card. The message says why.
Result<std::vector<GpuInfo>> ListCudaDevices();

// The device at that place of the list. kUnimplemented: the kernels are for newer cards.
Result<std::unique_ptr<GpuDevice>> OpenCudaDevice(std::size_t place);

}  // namespace troupe
