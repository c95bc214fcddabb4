// "1-3,7" on the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace troupe {

// In the order given; none for an empty text. The error names the option.
Result<std::vector<std::uint32_t>> ParseNumberList(const std::string& option,
                                                   const std::string& text);

}  // namespace troupe
