#include "cluster/answer_rows.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "kernels/quantize_activations.h"

namespace troupe {

void AnswerRowWriter::Write(RowForm form, std::span<const float> row, std::span<std::byte> bytes) {
  TROUPE_CHECK(bytes.size() == WireRowBytes(form, row.size()));
  switch (form) {
    case RowForm::kFloat:
      std::memcpy(bytes.data(), row.data(), bytes.size());
      return;
    case RowForm::kInt8: {
      groups_.resize(row.size() / kGroupCols);
      const Activations one{.tokens = 1,
                            .cols = row.size(),
                            .values = row.data(),
                            .stride = row.size(),
                            .groups = groups_.data()};
      QuantizeActivations(one, 0, 1);
      return PackRow(groups_, bytes);
    }
    case RowForm::kBf16:
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::uint16_t rounded = FloatToBf16(row[i]);
        std::memcpy(bytes.data() + i * sizeof rounded, &rounded, sizeof rounded);
      }
      return;
  }
}

void ReadAnswerRow(RowForm form, std::span<const std::byte> bytes, std::span<float> row) {
  TROUPE_CHECK(bytes.size() == WireRowBytes(form, row.size()));
  switch (form) {
    case RowForm::kFloat:
      std::memcpy(row.data(), bytes.data(), bytes.size());
      return;
    case RowForm::kInt8:
      for (std::size_t first = 0; first < row.size(); first += kGroupCols) {
        float scale = 0;
        std::memcpy(&scale, bytes.data(), sizeof scale);
        for (std::size_t i = 0; i < kGroupCols; ++i) {
          const auto code = static_cast<std::int8_t>(bytes[sizeof scale + i]);
          row[first + i] = scale * static_cast<float>(code);
        }
        bytes = bytes.subspan(kWireGroupBytes);
      }
      return;
    case RowForm::kBf16:
      for (std::size_t i = 0; i < row.size(); ++i) {
        std::uint16_t rounded = 0;
        std::memcpy(&rounded, bytes.data() + i * sizeof rounded, sizeof rounded);
        row[i] = Bf16ToFloat(rounded);
      }
      return;
  }
}

void RoundAnswerRows(RowForm form, std::size_t width, std::span<float> rows) {
  if (form == RowForm::kFloat) return;
  AnswerRowWriter writer;
  std::vector<std::byte> bytes(WireRowBytes(form, width));
  for (; !rows.empty(); rows = rows.subspan(width)) {
    writer.Write(form, rows.first(width), bytes);
    ReadAnswerRow(form, bytes, rows.first(width));
  }
}

}  // namespace troupe
