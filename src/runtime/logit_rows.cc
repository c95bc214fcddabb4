#include "runtime/logit_rows.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace troupe {

Bytes LogitRows::BytesFor(std::uint32_t sequences, std::size_t vocabulary) {
  return Bytes(sequences * vocabulary * sizeof(float));
}

LogitRows::LogitRows(std::uint32_t sequences, std::size_t vocabulary)
    : vocabulary_(vocabulary),
      logits_(sequences * vocabulary),
      row_of_(sequences),
      sequence_in_(sequences) {
  std::iota(row_of_.begin(), row_of_.end(), 0);
  std::iota(sequence_in_.begin(), sequence_in_.end(), 0);
}

std::span<float> LogitRows::Row(std::uint32_t row) {
  return std::span(logits_).subspan(row * vocabulary_, vocabulary_);
}

std::span<const float> LogitRows::Of(SequenceId sequence) const {
  return std::span(logits_).subspan(row_of_[sequence] * vocabulary_, vocabulary_);
}

std::span<float> LogitRows::Place(std::span<const SequenceId> sequences) {
  for (std::uint32_t row = 0; row < sequences.size(); ++row) {
    const SequenceId comes = sequences[row], goes = sequence_in_[row];
    if (comes == goes) continue;
    const std::uint32_t freed = row_of_[comes];
    TROUPE_CHECK(freed > row);  // else it was placed before
    const bool written_anyway = std::ranges::find(sequences, goes) != sequences.end();
    if (!written_anyway) std::ranges::copy(Row(row), Row(freed).begin());
    row_of_[comes] = row, row_of_[goes] = freed;
    sequence_in_[row] = comes, sequence_in_[freed] = goes;
  }
  return std::span(logits_).first(sequences.size() * vocabulary_);
}

}  // namespace troupe
