// CUDA in a build without nvcc.
#include "gpu/cuda.h"

namespace troupe {

Result<std::vector<GpuInfo>> ListCudaDevices() {
  return Error(Code::kNotFound, "no CUDA: built without nvcc");
}

Result<std::unique_ptr<GpuDevice>> OpenCudaDevice(std::size_t) {
  return ListCudaDevices().status();
}

}  // namespace troupe
