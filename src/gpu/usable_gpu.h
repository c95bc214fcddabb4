// From what a person asked for to a device that may compute: which of those that are there is
// meant, and one of them opened, its kernels built, and tested.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/tensor_type.h"
#include "gpu/device.h"
#include "gpu/kernels.h"
#include "gpu/listing.h"

namespace troupe {

// That a driver is waited for: until it says which devices there are, and until one is open, for
// which it compiles.
inline constexpr Nanos kLongestGpuListing = 20'000'000'000;
inline constexpr Nanos kLongestGpuOpening = 120'000'000'000;

// Places in the list: for "auto" every card, and no driver that computes on the processor; for
// "none" no device; else those with the text in their name or platform, in any case of letters.
// kNotFound where no device has it; the message names those that there are.
Result<std::vector<std::size_t>> ChooseGpus(std::span<const GpuInfo> infos,
                                            std::string_view choice);

// "; no CUDA: cuInit: ..." of devices that OpenCL alone has although a driver of CUDA is here, and
// else "": behind a line that says that the device somebody wants is not there.
std::string ButNoCuda(std::span<const GpuInfo> infos);

struct TestedGpu {
  std::unique_ptr<GpuDevice> device;
  std::unique_ptr<GpuKernels> kernels;  // after the device, which must outlive them
};

// Each card once, whichever ways there are to it (listing.h).
Result<std::vector<GpuInfo>> ListGpus();

// By the first of some ways to a card that `open` opens, so that a card that is too old for CUDA's
// kernels may do by OpenCL: a warning says so. A card that computed something else is not tried
// by another way. Where none opens it, why the first one does not. `why`: of a way that the list
// lacks, by which the card should be reached first.
Result<TestedGpu> OpenByFirst(std::span<const GpuWay> ways,
                              const std::function<Result<TestedGpu>(const GpuWay&)>& open,
                              Status why = OkStatus());
// That is CUDA, of a card that has NVIDIA's OpenCL alone because a driver of CUDA gives no device.
Status WhyNotByCuda(const GpuInfo& info);

// The device at that place of ListGpus(), for weights of these types. kFailedPrecondition: it
// computed something else than the processor does. By any other error it was not compared.
Result<TestedGpu> OpenTestedGpu(std::size_t place, std::span<const TensorType> types);

// What is known of a machine's devices, and how one is opened: each may be asked on any thread, and
// for as long as a driver takes.
struct GpuDrivers {
  // By the system's device files: no driver is loaded for it.
  std::function<bool()> may_have_card;
  std::function<Result<std::vector<GpuInfo>>()> list;
  // The device at a place of the list, for weights of these types.
  std::function<Result<TestedGpu>(std::size_t place, std::span<const TensorType> types)> open;
};
GpuDrivers DriversOfThisMachine();

}  // namespace troupe
