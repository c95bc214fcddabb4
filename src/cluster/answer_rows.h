// Rows of an answer between the floats that were computed and the bytes of a frame, in the form
// that was asked for (expert/row_form.h). Floats keep every bit. The other forms round, the same on
// every machine: bf16 as base/half.h does, 8-bit codes as quant/activations.h does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cluster/wire/wire_rows.h"
#include "quant/activations.h"

namespace troupe {

// `bytes` are the form's WireRowBytes of a row as long as `row`.
void ReadAnswerRow(RowForm form, std::span<const std::byte> bytes, std::span<float> row);

class AnswerRowWriter {
 public:
  void Write(RowForm form, std::span<const float> row, std::span<std::byte> bytes);

 private:
  std::vector<ActivationGroup> groups_;  // kept for their memory
};

// What a reader has of rows as long as `width` that were sent in the form.
void RoundAnswerRows(RowForm form, std::size_t width, std::span<float> rows);

}  // namespace troupe
