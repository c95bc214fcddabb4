// Devices that OpenCL's drivers offer. A build without OpenCL's headers has none, and says so.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// All of them, in the order in which the drivers name them: none is no error, no OpenCL is one.
Result<std::vector<GpuInfo>> ListOpenClDevices();

// The device at that place of the list. kFailedPrecondition: its float arithmetic is not the
// processor's, by what the driver says of it.
Result<std::unique_ptr<GpuDevice>> OpenOpenClDevice(std::size_t place);

}  // namespace troupe
