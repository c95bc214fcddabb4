// Walks through a source from its beginning: little-endian numbers and strings, buffered, never
// past a limit. Its errors name the source, the byte where the field at fault begins, and what the
// caller said it was reading.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/byte_source.h"

namespace troupe {

// Numbers are copied as they lie in the file.
static_assert(std::endian::native == std::endian::little);

class Cursor {
 public:
  // Reads nothing at or after byte `limit`, even if the source goes on.
  Cursor(const ByteSource& source, std::uint64_t limit);

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return end_ - position_; }
  std::uint64_t field_start() const { return field_start_; }  // of the last thing read

  // Named in errors from here on: "tensor 'x'". Empty for none.
  void set_context(std::string context) { context_ = std::move(context); }

  template <typename T>
  Result<T> Read() {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    field_start_ = position_;
    T number;
    TROUPE_RETURN_IF_ERROR(Take(std::as_writable_bytes(std::span(&number, 1))));
    return number;
  }

  // Fills all of `out`, as one field.
  Status ReadBytes(std::span<std::byte> out);
  // A length of 64 bits, then as many bytes, at most `max_bytes`.
  Result<std::string> ReadString(std::uint64_t max_bytes);
  // The length alone, checked against what remains: the caller reads the bytes.
  Result<std::uint64_t> ReadLength();

  // An error at the last thing read.
  template <typename... Args>
  Status Corrupt(fmt::format_string<Args...> format, Args&&... args) const {
    return ErrorAt(Code::kDataLoss, field_start_, fmt::format(format, std::forward<Args>(args)...));
  }
  Status ErrorAt(Code code, std::uint64_t position, std::string_view message) const;

 private:
  Status Take(std::span<std::byte> out);
  Status Refill();

  const ByteSource& source_;
  std::uint64_t end_;
  std::uint64_t position_ = 0;
  std::uint64_t field_start_ = 0;
  std::string context_;
  std::vector<std::byte> buffer_;  // source bytes [buffer_start_, buffer_start_ + size)
  std::uint64_t buffer_start_ = 0;
};

}  // namespace troupe
