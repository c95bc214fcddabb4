// The programs a device builds: exact_kernels.cl or buddies.cl behind the constants that a type of
// weights, or the arithmetic, gives it. They come from the C++ that the processor computes with, so
// that nothing is written twice.
#pragma once

#include <cstddef>
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

// A group's items, which is the most slots that a token may have, and the most experts of a layer.
inline constexpr std::uint32_t kGpuBuddyItems = 64;
inline constexpr std::uint32_t kGpuBuddyExperts = 1024;
// What AnswerByBuddies counts, and where.
enum class GpuBuddyCount : std::uint32_t {
  kBetaClosed,
  kTauClosed,
  kGammaClosed,
  kRhoClosed,
  kNoList,
  kNoneResident,
  kSubstituted,
};
inline constexpr std::size_t kGpuBuddyCounts = 7;

// Has the kernel AnswerByBuddies, for devices that compute with doubles.
GpuSource BuddySource();

}  // namespace troupe
