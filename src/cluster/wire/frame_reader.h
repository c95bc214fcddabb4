// Reads one frame from its beginning. The first fault is kept, and whatever is read after it is
// zero or empty: a decoder asks for the status before it loops or allocates, and once at the end.
// Errors name the message, the byte where the field begins, the field, and what was found and
// expected. Nothing is copied but numbers and texts. Writing: frame_writer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cluster/wire/frame_writer.h"
#include "cluster/wire/message_kind.h"

namespace troupe {

class FrameReader {
 public:
  // Reads the first byte, which must be `kind`. The frame must outlive what ReadArray, ReadBytes
  // and ReadRest give.
  FrameReader(PeerMessageKind kind, std::span<const std::byte> frame);

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  std::size_t remaining() const { return frame_.size() - position_; }

  // `field` must outlive the reader, as a literal does; so must that of all functions below.
  template <typename T>
  T Read(std::string_view field) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T number{};
    const std::span<const std::byte> bytes = ReadBytes(sizeof(T), field);
    if (!bytes.empty()) std::memcpy(&number, bytes.data(), sizeof(T));
    return number;
  }

  template <typename E>
  E ReadEnum(std::string_view field, E first, E last) {
    const auto found = Read<std::uint8_t>(field);
    const auto least = static_cast<unsigned>(first), most = static_cast<unsigned>(last);
    if (found < least || found > most) Fail("{} found, {} to {} expected", found, least, most);
    return ok() ? static_cast<E>(found) : first;
  }

  // A number of things of which each takes at least `bytes_each`: refused, and zero, if the rest of
  // the frame cannot hold them.
  template <typename T>
  T ReadCount(std::string_view field, std::size_t bytes_each) {
    const T count = Read<T>(field);
    if (count > remaining() / bytes_each) {
      Fail("{} found, at most {} expected in the {} bytes that remain", count,
           remaining() / bytes_each, remaining());
    }
    return ok() ? count : T{0};
  }

  bool ReadFlag(std::string_view field);       // 0 or 1
  double ReadMeasure(std::string_view field);  // finite, not below zero
  std::string ReadName(std::string_view field);
  std::string ReadText(std::string_view field);

  // Views of the frame, which are empty after a fault. For ReadArray the frame must lie at a
  // multiple of kFrameAlignment in memory, as a vector's does.
  std::span<const std::byte> ReadBytes(std::uint64_t bytes, std::string_view field);
  std::span<const std::byte> ReadRest(std::string_view field);
  template <typename T>
  std::span<const T> ReadArray(std::size_t count, std::string_view field) {
    static_assert(alignof(T) <= kFrameAlignment);
    const std::span<const std::byte> bytes = ReadBytes(std::uint64_t{sizeof(T)} * count, field);
    if (bytes.empty()) return {};
    TROUPE_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % alignof(T) == 0);
    return {reinterpret_cast<const T*>(bytes.data()), count};
  }
  void ReadPadding();

  // A fault in what was read last, unless there has been one before.
  template <typename... Args>
  void Fail(fmt::format_string<Args...> format, Args&&... args) {
    if (ok()) FailWith(fmt::format(format, std::forward<Args>(args)...));
  }

  // Refuses bytes behind the last field.
  Status Finish();

 private:
  void FailWith(std::string_view fault);

  std::string_view message_;
  std::span<const std::byte> frame_;
  std::size_t position_ = 0;
  std::size_t field_at_ = 0;
  std::string_view field_;
  Status status_;
};

}  // namespace troupe
