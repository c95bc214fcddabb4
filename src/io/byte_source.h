// Bytes that can be read at any offset. Parsers take one, so that they run on a file, on memory in
// a test, and on a fuzzer's input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace troupe {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::string_view name() const = 0;  // for errors: a path, or what stands in for one
  virtual std::uint64_t size() const = 0;
  // Fills all of `out` or fails. Threads may call it at once.
  virtual Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// Borrows memory that must outlive it.
class SpanSource final : public ByteSource {
 public:
  SpanSource(std::string name, std::span<const std::byte> bytes)
      : name_(std::move(name)), bytes_(bytes) {}

  std::string_view name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Status ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

// The error of a read that goes past the end, worded the same for every source.
Status ReadPastEnd(std::string_view name, std::uint64_t size, std::uint64_t offset,
                   std::uint64_t wanted);

}  // namespace troupe
