#include "gpu/device_copies.h"

namespace troupe {

Result<std::unique_ptr<GpuBuffer>> BufferWith(GpuDevice& device, std::span<const std::byte> bytes) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<GpuBuffer> buffer, device.Allocate(Bytes(bytes.size())));
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied,
                          device.CopyIn(GpuLane::kCompute, bytes, *buffer, Bytes(0), {}));
  TROUPE_RETURN_IF_ERROR(copied->Wait());
  return buffer;
}

Status ReadNow(GpuDevice& device, const GpuBuffer& from, std::span<std::byte> to) {
  TROUPE_ASSIGN_OR_RETURN(const GpuEventPtr copied,
                          device.CopyOut(GpuLane::kCompute, from, Bytes(0), to, {}));
  return copied->Wait();
}

}  // namespace troupe
