// Rows of codes as an entropy coder shortens them: bytes that are alike in a message lie together,
// each kind a stream (rans.h). The same rows come back, byte for byte. Pure; the format is
// docs/formats/states.md's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "split/codec/state_frame.h"

namespace troupe {

// Of rows one after the other: their scales' first and second bytes, and each code as a symbol.
struct CodeColumns {
  std::vector<std::uint8_t> low, high, codes;
};
CodeColumns ColumnsOf(const StateFrame& frame, std::span<const std::byte> rows);

// Appends what stands for these rows of a frame of codes, as many as it says.
void AppendCodedRows(const StateFrame& frame, std::span<const std::byte> rows,
                     std::vector<std::byte>& out);

// The rows again. REQUIRES: as many bytes as they are. kDataLoss: nothing that stands for rows.
Status ReadCodedRows(const StateFrame& frame, std::span<const std::byte> in,
                     std::span<std::byte> rows);

}  // namespace troupe
