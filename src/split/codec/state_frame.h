// Rows that cross a cut, as one message: what they are, then their bytes, or what an entropy coder
// has made of them (coded_rows.h). Pure: it knows how long a row is and not what is in it
// (state_codec.h does). The format is docs/formats/states.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "split/codec/state_code.h"

namespace troupe {

inline constexpr std::uint32_t kMostStateRows = 4096;
inline constexpr std::uint32_t kMostStatePosition = 1 << 30;
inline constexpr std::size_t kStateFrameBytes = 40;  // before the rows

struct StateFrame {
  std::uint32_t layer = 0;  // the first one behind the cut
  std::uint32_t width = 0;
  std::uint32_t kept = 0;  // channels of each row that cross apart
  StateCode code;
  std::uint64_t basis = 0;  // DigestOf
  std::uint32_t first = 0;  // position of the first row in its sequence
  std::uint32_t rows = 0;

  // Before an entropy coder.
  std::size_t row_bytes() const { return StateRowBytes(code, width, kept); }
  std::size_t rows_bytes() const { return rows * row_bytes(); }
  bool operator==(const StateFrame&) const = default;
};

// The message, with rows of zeros: the caller writes them where they lie (RowsOf). Of an entropy
// coder: without rows, which the caller appends.
std::vector<std::byte> NewFrame(const StateFrame& frame);
// What the message says before its rows. kDataLoss unless its bytes are as many as that, or, of an
// entropy coder, fewer.
Result<StateFrame> ReadFrame(std::span<const std::byte> message);

template <typename Byte>
std::span<Byte> RowsOf(std::span<Byte> message) {
  return message.subspan(kStateFrameBytes);
}

}  // namespace troupe
