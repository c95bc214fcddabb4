// Rows within messages: those that a peer is asked to compute, as floats or in 8 bits, and those
// that it answers with, as floats or, if the asker wants so, in fewer bits. Also which expert has
// how many of them. Views only: a decoded message shows the rows where they lie in its frame.
//
// In 8 bits the wire carries the scale and the codes of each ActivationGroup. Its sums are left
// out: the reader adds up the codes again, which is exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cluster/wire/frame_reader.h"
#include "expert/row_form.h"
#include "quant/activations.h"

namespace troupe {

inline constexpr std::size_t kWireGroupBytes = sizeof(float) + kGroupCols;
inline constexpr std::uint32_t kMaxWireWidth = 1 << 20;
inline constexpr std::size_t kMaxWireRows = 65535;  // of an ask, and of an expert in an answer

// In 8 bits the width is a multiple of 32.
constexpr std::size_t WireRowBytes(RowForm form, std::size_t width) {
  switch (form) {
    case RowForm::kFloat:
      return width * sizeof(float);
    case RowForm::kInt8:
      return width / kGroupCols * kWireGroupBytes;
    case RowForm::kBf16:
      return width * sizeof(std::uint16_t);
  }
  return 0;
}
// Whether rows as long as that can have the form.
constexpr bool TakesWidth(RowForm form, std::uint32_t width) {
  return width >= 1 && width <= kMaxWireWidth &&
         (form != RowForm::kInt8 || width % kGroupCols == 0);
}

// Between groups and their bytes on the wire, kWireGroupBytes each, at any alignment.
void PackRow(std::span<const ActivationGroup> groups, std::span<std::byte> row);
void UnpackRow(std::span<const std::byte> row, std::span<ActivationGroup> groups);

struct WireRows {
  RowForm form = RowForm::kFloat;
  std::uint32_t width = 0;
  std::size_t count = 0;
  std::span<const std::byte> bytes;  // of all rows

  std::size_t row_bytes() const { return WireRowBytes(form, width); }
  std::span<const std::byte> Row(std::size_t i) const {
    return bytes.subspan(i * row_bytes(), row_bytes());
  }
  // In the form of floats alone.
  std::span<const float> Floats(std::size_t i) const {
    TROUPE_CHECK(form == RowForm::kFloat);
    return {reinterpret_cast<const float*>(Row(i).data()), width};
  }

  bool operator==(const WireRows& other) const;  // by bytes, so that a NaN equals itself
};

// An expert of an answer, or of an ask; the very bytes of the wire.
struct ExpertRows {
  std::uint16_t expert = 0;
  std::uint16_t rows = 0;

  bool operator==(const ExpertRows&) const = default;
};
static_assert(sizeof(ExpertRows) == 4);

// A frame of which all is written but the rows: the caller writes each where it is to lie, and
// nothing is copied or allocated again.
class RowFrame {
 public:
  RowFrame(std::vector<std::byte> frame, std::size_t rows_at, std::size_t row_bytes)
      : frame_(std::move(frame)), rows_at_(rows_at), row_bytes_(row_bytes) {}

  std::span<std::byte> Row(std::size_t i) {
    return std::span(frame_).subspan(rows_at_ + i * row_bytes_, row_bytes_);
  }
  // In the form of floats alone.
  std::span<float> Floats(std::size_t i) {
    return {reinterpret_cast<float*>(Row(i).data()), row_bytes_ / sizeof(float)};
  }
  std::span<std::byte> rows() { return std::span(frame_).subspan(rows_at_); }

  std::vector<std::byte> Take() && { return std::move(frame_); }

 private:
  std::vector<std::byte> frame_;
  std::size_t rows_at_;
  std::size_t row_bytes_;
};

// What the readers of asks and answers share.
std::uint32_t ReadWidth(FrameReader& in, RowForm form);
// Each expert once, with at least a row.
std::span<const ExpertRows> ReadExpertRows(FrameReader& in, std::size_t count);
// The rest of the frame, which must be all bytes of `count` rows and no more.
WireRows ReadRows(FrameReader& in, RowForm form, std::uint32_t width, std::size_t count);
// What their writers may be given.
void CheckWidth(RowForm form, std::uint32_t width);

}  // namespace troupe
