// What stands between the quotes of a string in a template: Python's escapes.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe::jinja {

Result<std::string> ReadStringLiteral(std::string_view inside);

}  // namespace troupe::jinja
