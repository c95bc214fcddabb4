// OpenCL in a build without its headers.
#include "gpu/opencl.h"

namespace troupe {

Result<std::vector<GpuInfo>> ListOpenClDevices() {
  return Error(Code::kNotFound, "no OpenCL: built without its headers");
}

Result<std::unique_ptr<GpuDevice>> OpenOpenClDevice(std::size_t) {
  return ListOpenClDevices().status();
}

}  // namespace troupe
