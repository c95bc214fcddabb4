// The programs a device builds: exact_kernels.cl behind the constants that a type of weights, or
// the arithmetic, gives it. They come from the C++ that the processor computes with, so that
// nothing is written twice.
#pragma once

#include <cstdint>

#include "base/tensor_type.h"
#include "gpu/device.h"

namespace troupe {

// How the work of a product is cut: rows of x that a group of items has, and groups of columns that
// it computes at a time.
inline constexpr std::uint32_t kGpuTile = 8;
inline constexpr std::uint32_t kGpuSlices = 16;
inline constexpr std::uint32_t kGpuGroupItems = 64;  // of kernels whose items are alone
static_assert(kGpuTile <= kGpuSlices, "the items of a slice add the terms of a row of x");

// Has the kernel Product for weights of that type.
GpuSource ProductSource(TensorType type);

// Has the kernels Quantize and Combine.
GpuSource CommonSource();

}  // namespace troupe
