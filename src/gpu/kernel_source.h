// The programs a device builds: exact_kernels.cl or buddies.cl behind the constants that a type of
// weights, or the arithmetic, gives it. They come from the C++ that the processor computes with, so
// that nothing is written twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/tensor_type.h"
#include "gpu/device.h"
#include "gpu/kernel_text.h"

namespace troupe {

// How the work of a product is cut: rows of x that a group of items has, and groups of columns that
// it computes at a time.
inline constexpr std::uint32_t kGpuTile = 8;
inline constexpr std::uint32_t kGpuSlices = 16;
inline constexpr std::uint32_t kGpuGroupItems = 64;  // of kernels whose items are alone
static_assert(kGpuTile <= kGpuSlices, "the items of a slice add the terms of a row of x");

// `names` says what the kernels' words in capitals are in a device's language.

// Has the kernel Product for weights of that type.
inline constexpr std::string_view kProductKernels[] = {"Product"};
GpuSource ProductSource(TensorType type, std::string_view names = kOpenClNamesText);

inline constexpr std::string_view kCommonKernels[] = {"Quantize", "Combine"};
GpuSource CommonSource(std::string_view names = kOpenClNamesText);

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

// For devices that compute with doubles.
inline constexpr std::string_view kBuddyKernels[] = {"AnswerByBuddies"};
GpuSource BuddySource(std::string_view names = kOpenClNamesText);

// All that there are: what is compiled before a device is known.
struct GpuProgram {
  GpuSource source;
  std::span<const std::string_view> kernels;
};
std::vector<GpuProgram> AllPrograms(std::string_view names);

}  // namespace troupe
