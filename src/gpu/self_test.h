// Whether a device computes what the processor does, tried before it is used: a few products of
// each type of weights, the 8-bit form of activations and the forms of gates, with the numbers that
// devices like to get wrong (subnormal ones, halves between integers, infinities). Drivers promise
// IEEE floats; this is why we need not believe them.
#pragma once

#include <span>

#include "base/status.h"
#include "base/tensor_type.h"
#include "gpu/kernels.h"

namespace troupe {

// kFailedPrecondition: some number differs, and the message says which. The kernels were built for
// these types.
Status TestGpu(GpuKernels& kernels, std::span<const TensorType> types);

}  // namespace troupe
