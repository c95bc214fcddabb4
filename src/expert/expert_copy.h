// In which of its precisions an expert is stored, read or held.
#pragma once

#include <cstdint>

namespace troupe {

enum class ExpertCopy : std::uint8_t {
  kFull,  // as the model has it: the only one that may answer an exact request
  kLow
};

}  // namespace troupe
