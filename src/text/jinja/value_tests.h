// The tests of Jinja: `value is name(arguments)`.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

bool HasTest(std::string_view name);
Result<bool> ApplyTest(std::string_view name, const Value& value, const Arguments& arguments,
                       Meter& meter);

}  // namespace troupe::jinja
