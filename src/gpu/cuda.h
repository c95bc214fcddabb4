// NVIDIA's cards through CUDA's driver API, by kernels that nvcc compiled when the program was
// built. A build without nvcc has none, and says so.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// All of them, in the order in which the driver numbers them. kNotFound where there is none, and
// why: a build without nvcc, no driver, one that does not start, or no card.
Result<std::vector<GpuInfo>> ListCudaDevices();

// The device at that place of the list. kUnimplemented: the kernels are for newer cards.
Result<std::unique_ptr<GpuDevice>> OpenCudaDevice(std::size_t place);

}  // namespace troupe
