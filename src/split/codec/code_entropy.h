// How many bits the codes of rows say, of the 8 or 4 that each takes: what an entropy coder may
// gain on them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "split/codec/state_frame.h"

namespace troupe {

class CodeEntropy {
 public:
  // Rows of codes, of the same shape each time, before an entropy coder.
  void Add(const StateFrame& frame, std::span<const std::byte> rows);

  // Of order 0, each group of a row by its own frequencies; 0 where there were no codes.
  double BitsACode() const;

 private:
  std::vector<std::array<std::uint64_t, 256>> counts_;  // by group, as the row has them
};

}  // namespace troupe
