// Devices that OpenCL's drivers offer. A build without OpenCL's headers has none, and says so.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// All of them, in the order in which the drivers name them. kNotFound where there is none, and why:
// a build without OpenCL, no loader, no driver, or drivers without a device.
Result<std::vector<GpuInfo>> ListOpenClDevices();

// The device at that place of the list. kUnimplemented: its float arithmetic is not the
// processor's, by what the driver says of it.
Result<std::unique_ptr<GpuDevice>> OpenOpenClDevice(std::size_t place);

}  // namespace troupe
