#include "split/codec/coded_rows.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "split/codec/code_groups.h"
#include "split/codec/rans.h"

namespace troupe {
namespace {

constexpr unsigned kCodeBits = 4, kCodeMask = 15;  // of int4

struct RowShape {
  explicit RowShape(const StateFrame& frame)
      : form(frame.code.form),
        numbers(frame.code.rank > 0 ? frame.code.rank : frame.width - frame.kept),
        apart(frame.row_bytes() - PackedBytes(form, numbers)) {}

  std::size_t groups() const { return (numbers + kCodedTogether - 1) / kCodedTogether; }

  StateForm form;
  std::size_t numbers;  // with a code
  std::size_t apart;    // bytes before their groups: floats
};

// visit(group's bytes, its numbers) for each group of all rows.
template <typename Byte, typename Visit>
void ForGroups(const StateFrame& frame, std::span<Byte> rows, Visit visit) {
  const RowShape shape(frame);
  const std::size_t row_bytes = frame.row_bytes();
  for (std::size_t r = 0; r < frame.rows; ++r) {
    std::size_t at = r * row_bytes + shape.apart;
    for (std::size_t left = shape.numbers; left > 0;) {
      const std::size_t count = std::min(kCodedTogether, left);
      const std::size_t bytes = PackedBytes(shape.form, count);
      visit(rows.subspan(at, bytes), count);
      at += bytes;
      left -= count;
    }
  }
}

CodeColumns EmptyColumns(const StateFrame& frame) {
  const RowShape shape(frame);
  const std::size_t groups = frame.rows * shape.groups();
  return {.low = std::vector<std::uint8_t>(groups),
          .high = std::vector<std::uint8_t>(groups),
          .codes = std::vector<std::uint8_t>(frame.rows * shape.numbers)};
}

}  // namespace

CodeColumns ColumnsOf(const StateFrame& frame, std::span<const std::byte> rows) {
  TROUPE_CHECK(frame.code.form != StateForm::kFloat && rows.size() == frame.rows_bytes());
  CodeColumns columns = EmptyColumns(frame);
  const bool is_int8 = frame.code.form == StateForm::kInt8;
  std::size_t group = 0;
  std::uint8_t* code = columns.codes.data();
  ForGroups(frame, rows, [&](std::span<const std::byte> bytes, std::size_t count) {
    columns.low[group] = std::to_integer<std::uint8_t>(bytes[0]);
    columns.high[group++] = std::to_integer<std::uint8_t>(bytes[1]);
    for (std::size_t i = 0; i < count; ++i) {
      const auto byte = std::to_integer<unsigned>(bytes[2 + (is_int8 ? i : i / 2)]);
      *code++ = static_cast<std::uint8_t>(is_int8 ? byte : byte >> (i % 2 * kCodeBits) & kCodeMask);
    }
  });
  return columns;
}

void AppendCodedRows(const StateFrame& frame, std::span<const std::byte> rows,
                     std::vector<std::byte>& out) {
  const CodeColumns columns = ColumnsOf(frame, rows);
  const std::size_t floats = RowShape(frame).apart;
  for (std::size_t r = 0; r < frame.rows; ++r) {
    const auto apart = rows.subspan(r * frame.row_bytes(), floats);
    out.insert(out.end(), apart.begin(), apart.end());
  }
  for (const auto* column : {&columns.low, &columns.high, &columns.codes}) {
    AppendStream(*column, out);
  }
}

Status ReadCodedRows(const StateFrame& frame, std::span<const std::byte> in,
                     std::span<std::byte> rows) {
  TROUPE_CHECK(frame.code.form != StateForm::kFloat && rows.size() == frame.rows_bytes());
  const RowShape shape(frame);
  if (in.size() < frame.rows * shape.apart) {
    return DataLoss("states: {} bytes by an entropy coder, {} of floats expected before them",
                    in.size(), frame.rows * shape.apart);
  }
  for (std::size_t r = 0; r < frame.rows; ++r) {
    std::ranges::copy(in.first(shape.apart),
                      rows.begin() + static_cast<std::ptrdiff_t>(r * frame.row_bytes()));
    in = in.subspan(shape.apart);
  }
  CodeColumns columns = EmptyColumns(frame);
  for (auto* column : {&columns.low, &columns.high, &columns.codes}) {
    TROUPE_RETURN_IF_ERROR(TakeStream(in, *column));
  }
  if (!in.empty()) return DataLoss("states: {} bytes behind the last code", in.size());
  std::size_t group = 0;
  const std::uint8_t* code = columns.codes.data();
  ForGroups(frame, rows, [&](std::span<std::byte> bytes, std::size_t count) {
    bytes[0] = static_cast<std::byte>(columns.low[group]);
    bytes[1] = static_cast<std::byte>(columns.high[group++]);
    for (std::size_t i = 0; i < count; ++i, ++code) {
      if (shape.form == StateForm::kInt8) {
        bytes[2 + i] = static_cast<std::byte>(*code);
      } else if (i % 2 == 0) {
        bytes[2 + i / 2] = static_cast<std::byte>(*code & kCodeMask);
      } else {
        bytes[2 + i / 2] |= static_cast<std::byte>(*code << kCodeBits);
      }
    }
  });
  return OkStatus();
}

}  // namespace troupe
