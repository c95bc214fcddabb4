// The folder's kernels, and what their words are in two languages, as text, which its
// CMakeLists.txt makes C++ of.
#pragma once

#include <string_view>

namespace troupe {

extern const std::string_view kOpenClNamesText;   // names_opencl.cl
extern const std::string_view kCudaNamesText;     // names_cuda.cuh
extern const std::string_view kExactKernelsText;  // exact_kernels.cl
extern const std::string_view kBuddiesText;       // buddies.cl

}  // namespace troupe
