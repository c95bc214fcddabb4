// In which form rows of numbers travel between machines. What their bytes are is cluster/wire's to
// know; which answers may come in fewer bits, the runtime's.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

enum class RowForm : std::uint8_t {
  kFloat = 0,  // every bit
  kInt8 = 1,   // codes with a scale for each 32 (quant/activations.h)
  kBf16 = 2,   // rounded to the nearest, ties to even
};

constexpr std::string_view ToString(RowForm form) {
  switch (form) {
    case RowForm::kFloat:
      return "floats";
    case RowForm::kInt8:
      return "8-bit codes";
    case RowForm::kBf16:
      return "bf16";
  }
  return "unknown";
}

}  // namespace troupe
