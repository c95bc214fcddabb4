// Any bytes give a container's index or an error, without a crash, a leak or a large allocation.
// What is accepted keeps the promises of store/container_format.h and is, encoded again, the same
// bytes. As no fuzzer finds a checksum, each input is also tried with the one it needs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "store/container_format.h"

namespace troupe {
namespace {

constexpr std::size_t kHeaderBytes = 64, kFileBytesAt = 48;
constexpr std::size_t kExpertsAt = 32, kPrecisionsAt = 36, kLayersAt = 40;
constexpr std::uint64_t kMostFront = 1 << 20;  // larger ones only make the fuzzer slow

template <typename T>
T At(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// The index followed by as many experts as it says: zeros that are made when asked for.
class FrontAndZeros final : public ByteSource {
 public:
  FrontAndZeros(std::span<const std::byte> front, std::uint64_t size)
      : front_("fuzz", front), size_(size) {}

  std::string_view name() const override { return front_.name(); }
  std::uint64_t size() const override { return size_; }
  Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    TROUPE_CHECK(offset <= size_ && out.size() <= size_ - offset);
    std::ranges::fill(out, std::byte{0});
    if (offset >= front_.size()) return OkStatus();
    return front_.ReadAt(offset,
                         out.first(std::min<std::uint64_t>(out.size(), front_.size() - offset)));
  }

 private:
  SpanSource front_;
  std::uint64_t size_;
};

void CheckIndex(const ContainerIndex& index, std::uint64_t file_size) {
  TROUPE_CHECK(index.precisions.size() == 1 || index.precisions.size() == 2);
  for (const std::vector<ContainerLayer>& layers : index.precisions) {
    TROUPE_CHECK(layers.size() == index.precisions[0].size());
    for (const ContainerLayer& layer : layers) {
      TROUPE_CHECK(layer.layer < kMaxContainerLayers);
      TROUPE_CHECK(layer.checksums.size() == index.experts);
      for (std::uint32_t e = 0; e < index.experts; ++e) {
        TROUPE_CHECK(layer.OffsetOf(e) % kContainerAlignment == 0);
        TROUPE_CHECK(layer.Stride() <= file_size);
        TROUPE_CHECK(layer.OffsetOf(e) <= file_size - layer.Stride());
      }
    }
  }
  ContainerIndex placed = index;
  TROUPE_CHECK(PlaceExperts(placed) == file_size);
  TROUPE_CHECK(placed == index);
}

void CheckSealed(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return;
  const std::uint64_t records = std::uint64_t{At<std::uint32_t>(bytes, kPrecisionsAt)} *
                                std::min(At<std::uint32_t>(bytes, kLayersAt), kMaxContainerLayers);
  const std::uint64_t record = 32 + 8 * std::uint64_t{At<std::uint32_t>(bytes, kExpertsAt)};
  if (records > kMostFront || records * record > kMostFront) return;
  std::vector<std::byte> front(AlignUp(kHeaderBytes + records * record, kContainerAlignment));
  const std::size_t meant = std::min<std::size_t>(bytes.size(), kHeaderBytes + records * record);
  std::copy_n(bytes.begin(), meant, front.begin());
  SealContainerIndex(front);
  const FrontAndZeros file(front, At<std::uint64_t>(bytes, kFileBytesAt));
  const Result<ContainerIndex> index = ReadContainerIndex(file);
  if (!index.ok()) {
    TROUPE_CHECK(index.status().message().find('\n') == std::string::npos);
    return;
  }
  CheckIndex(*index, file.size());
  TROUPE_CHECK(EncodeContainerIndex(*index) == front);
}

void CheckAsItIs(std::span<const std::byte> bytes) {
  const Result<ContainerIndex> index = ReadContainerIndex(SpanSource("fuzz", bytes));
  if (index.ok()) CheckIndex(*index, bytes.size());
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  troupe::CheckAsItIs(bytes);
  troupe::CheckSealed(bytes);
  return 0;
}
