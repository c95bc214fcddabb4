// A row of logits for each sequence of an engine, all taken at once when it opens. A product writes
// its rows side by side, so those of the sequences that a pass computes are brought to the front;
// every other sequence keeps what it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/pass_facts.h"

namespace troupe {

class LogitRows {
 public:
  static Bytes BytesFor(std::uint32_t sequences, std::size_t vocabulary);

  LogitRows(std::uint32_t sequences, std::size_t vocabulary);

  std::span<const float> Of(SequenceId sequence) const;

  // Gives the sequences the first rows, in this order, and returns these rows to be written. What
  // they held is lost. Each sequence once.
  std::span<float> Place(std::span<const SequenceId> sequences);

 private:
  std::span<float> Row(std::uint32_t row);

  std::size_t vocabulary_;
  std::vector<float> logits_;
  std::vector<std::uint32_t> row_of_;    // by sequence
  std::vector<SequenceId> sequence_in_;  // by row
};

}  // namespace troupe
