// The keys of clients: one a line, in a file of their own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

// One a line; blanks around it and empty lines do not count. There is at least one.
Result<std::vector<std::string>> ParseKeys(const std::string& path, std::string_view text);
Result<std::vector<std::string>> ReadKeys(const std::string& path);

}  // namespace troupe
