// Writes one frame: its kind, then one field after the other, little-endian. Memory is allocated
// once, for the number of bytes that the caller works out beforehand. Reading: frame_reader.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "cluster/wire/message_kind.h"

namespace troupe {

// Numbers are copied as they lie in the frame.
static_assert(std::endian::native == std::endian::little);

// Arrays of numbers lie at multiples of this in a frame, and are padded with zeros to it, so that
// they can be used where they lie.
inline constexpr std::size_t kFrameAlignment = 4;

constexpr std::size_t PaddedToFrame(std::size_t bytes) {
  return (bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

class FrameWriter {
 public:
  // `bytes` of the whole frame, the kind counted: no more and no fewer are written.
  FrameWriter(PeerMessageKind kind, std::size_t bytes);

  template <typename T>
  void Put(T number) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    PutBytes(std::as_bytes(std::span(&number, 1)));
  }
  template <typename T>
  void PutArray(std::span<const T> numbers) {
    PutBytes(std::as_bytes(numbers));
  }
  void PutMeasure(double value);  // finite, not below zero
  void PutBytes(std::span<const std::byte> bytes);
  void PutPadding();
  // Zeros that the caller overwrites once the frame is taken; returns where they begin.
  std::size_t PutRoom(std::size_t bytes);

  // A length in 16 bits, then the characters: kTextLengthBytes more than the text has. Names must
  // be names (wire_text.h), texts be texts.
  void PutName(std::string_view name);
  void PutText(std::string_view text);

  std::vector<std::byte> Take() &&;

 private:
  std::size_t bytes_;
  std::vector<std::byte> frame_;
};

inline constexpr std::size_t kTextLengthBytes = sizeof(std::uint16_t);
constexpr std::size_t TextBytes(std::string_view text) { return kTextLengthBytes + text.size(); }

}  // namespace troupe
