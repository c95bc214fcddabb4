#include "gguf/cursor.h"

#include <algorithm>

#include "base/bytes.h"

namespace troupe {
namespace {

// Headers are a few megabytes of fields of a few bytes each.
constexpr std::uint64_t kBufferBytes = 64 * 1024;

}  // namespace

Cursor::Cursor(const ByteSource& source, std::uint64_t limit)
    : source_(source), end_(std::min(source.size(), limit)) {}

Status Cursor::ReadBytes(std::span<std::byte> out) {
  field_start_ = position_;
  return Take(out);
}

Result<std::uint64_t> Cursor::ReadLength() {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t length, Read<std::uint64_t>());
  if (length > remaining()) {
    return Corrupt("a string of {} bytes where {} remain", length, remaining());
  }
  return length;
}

Result<std::string> Cursor::ReadString(std::uint64_t max_bytes) {
  TROUPE_ASSIGN_OR_RETURN(const std::uint64_t length, ReadLength());
  if (length > max_bytes) {
    return Corrupt("a string of {} bytes, at most {} allowed", length, max_bytes);
  }
  std::string text(length, '\0');
  TROUPE_RETURN_IF_ERROR(Take(std::as_writable_bytes(std::span(text))));  // still the same field
  return text;
}

Status Cursor::Take(std::span<std::byte> out) {
  if (out.size() > remaining()) {
    const bool cut = end_ == source_.size();
    return Corrupt("{} bytes wanted at byte {}, but the {} at byte {}", out.size(), position_,
                   cut ? "file ends" : "header must end", end_);
  }
  while (!out.empty()) {
    const std::uint64_t used = position_ - buffer_start_;
    if (used == buffer_.size()) {
      if (out.size() >= kBufferBytes) {  // long arrays go straight to where they belong
        TROUPE_RETURN_IF_ERROR(source_.ReadAt(position_, out));
        position_ += out.size();
        buffer_start_ = position_;
        buffer_.clear();
        return OkStatus();
      }
      TROUPE_RETURN_IF_ERROR(Refill());
      continue;
    }
    const std::size_t n = std::min<std::size_t>(out.size(), buffer_.size() - used);
    std::memcpy(out.data(), buffer_.data() + used, n);
    position_ += n;
    out = out.subspan(n);
  }
  return OkStatus();
}

Status Cursor::Refill() {
  buffer_start_ = position_;
  buffer_.resize(std::min(kBufferBytes, remaining()));
  return source_.ReadAt(buffer_start_, buffer_);
}

Status Cursor::ErrorAt(Code code, std::uint64_t position, std::string_view message) const {
  return Error(code, "{}, byte {}: {}{}{}", source_.name(), position, context_,
               context_.empty() ? "" : ": ", message);
}

}  // namespace troupe
