#include "io/byte_source.h"

#include <cstring>

namespace troupe {

Status ReadPastEnd(std::string_view name, std::uint64_t size, std::uint64_t offset,
                   std::uint64_t wanted) {
  return DataLoss("{}: {} bytes wanted at byte {}, but it ends at byte {}", name, wanted, offset,
                  size);
}

Status SpanSource::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
    return ReadPastEnd(name_, bytes_.size(), offset, out.size());
  }
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  return OkStatus();
}

}  // namespace troupe
