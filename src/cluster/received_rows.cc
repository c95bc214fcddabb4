#include "cluster/received_rows.h"

#include <cstring>
#include <span>

#include "kernels/quantize_activations.h"

namespace troupe {

// Floats where they lie in memory of their own; codes with their sums, added up again.
Activations ReceivedRows::Of(const WireRows& rows) {
  const std::size_t width = rows.width;
  Activations x{.tokens = rows.count, .cols = width, .values = nullptr, .stride = width};
  const std::size_t groups = width % kGroupCols == 0 ? width / kGroupCols : 0;
  groups_.resize(rows.count * groups);
  x.groups = groups_.empty() ? nullptr : groups_.data();
  if (rows.form == RowForm::kInt8) {
    for (std::size_t row = 0; row < rows.count; ++row) {
      UnpackRow(rows.Row(row), std::span(groups_).subspan(row * groups, groups));
    }
    return x;
  }
  values_.resize(rows.count * width);
  std::memcpy(values_.data(), rows.bytes.data(), rows.bytes.size());
  x.values = values_.data();
  if (x.groups != nullptr) QuantizeActivations(x, 0, rows.count);
  return x;
}

}  // namespace troupe
