// Copies that are waited for: for what happens once, and for tests. Copies beside other work are
// GpuDevice's own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "gpu/device.h"

namespace troupe {

// A buffer that holds these bytes.
Result<std::unique_ptr<GpuBuffer>> BufferWith(GpuDevice& device, std::span<const std::byte> bytes);

// The first bytes of a buffer, after all work of the compute lane.
Status ReadNow(GpuDevice& device, const GpuBuffer& from, std::span<std::byte> to);

}  // namespace troupe
