// Any bytes give a header or an error, without a crash, a leak or a large allocation. What parses
// keeps the promises of gguf/header.h, can be asked for anything, and round-trips: writing it and
// reading that gives the same keys and tensors again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "gguf/encode.h"
#include "gguf/header.h"

namespace troupe {
namespace {

// An encoded header followed by as much padding and tensor data as it says: zeros that are made
// when asked for, since a large alignment can make them gigabytes.
class HeaderAndZeros final : public ByteSource {
 public:
  explicit HeaderAndZeros(const EncodedHeader& encoded)
      : head_("encoded", encoded.bytes), size_(encoded.total.count()) {}

  std::string_view name() const override { return head_.name(); }
  std::uint64_t size() const override { return size_; }
  Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memset(out.data(), 0, out.size());
    if (offset >= head_.size()) return OkStatus();
    return head_.ReadAt(offset, out.first(std::min(out.size(), head_.size() - offset)));
  }

 private:
  SpanSource head_;
  std::uint64_t size_;
};

void CheckTensors(const GgufHeader& header, std::uint64_t file_size) {
  for (const TensorInfo& tensor : header.tensors) {
    TROUPE_CHECK(tensor.offset % header.alignment == 0);
    TROUPE_CHECK(tensor.bytes.count() <= file_size);
    TROUPE_CHECK(tensor.offset <= file_size - tensor.bytes.count());
    TROUPE_CHECK(SizeOfTensor(tensor).value() == tensor.bytes);
  }
}

// No type may be taken for another: of the kinds of scalar at most one fits, an integer as both.
void CheckGetters(const Metadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    const bool integer = metadata.GetUint(key).ok() || metadata.GetInt(key).ok();
    const int kinds = integer + metadata.GetFloat(key).ok() + metadata.GetBool(key).ok() +
                      metadata.GetString(key).ok();
    TROUPE_CHECK(kinds == (TypeOf(value) == ValueType::kArray ? 0 : 1));
    const bool integers = metadata.GetUints(key).ok() || metadata.GetInts(key).ok();
    TROUPE_CHECK(integers + metadata.GetFloats(key).ok() + metadata.GetStrings(key).ok() <= 1);
    TROUPE_CHECK(Describe(value).find('\n') == std::string::npos);
  }
}

void CheckRoundTrip(const GgufHeader& header) {
  const std::vector<TensorSpec> specs(header.tensors.begin(), header.tensors.end());
  const EncodedHeader once = EncodeHeader(header.metadata, specs).value();
  const GgufHeader again = ParseGguf(HeaderAndZeros(once)).value();
  TROUPE_CHECK(again.tensors == once.tensors);
  // Bytes are compared, not values: a NaN is not equal to itself.
  const EncodedHeader twice = EncodeHeader(again.metadata, specs).value();
  TROUPE_CHECK(once.bytes == twice.bytes);
}

void CheckAnyBytes(std::span<const std::byte> bytes) {
  const auto header = ParseGguf(SpanSource("fuzz", bytes));
  if (!header.ok()) {
    TROUPE_CHECK(header.status().message().find('\n') == std::string::npos);
    return;
  }
  CheckTensors(*header, bytes.size());
  CheckGetters(header->metadata);
  CheckRoundTrip(*header);
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::CheckAnyBytes(std::as_bytes(std::span(data, size)));
  return 0;
}
