// The kernels as nvcc compiled them: PTX, which a driver makes code of its card of. One image for
// each program of kernel_source.h; the build makes their source (CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

namespace troupe {

struct CudaImage {
  std::string_view program;  // as GpuSource calls it
  std::string_view ptx;      // a zero follows
};
std::span<const CudaImage> CudaImages();

// The least compute capability of a card that they run on: 75 is 7.5.
extern const int kCudaCapability;

}  // namespace troupe
