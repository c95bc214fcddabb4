// The functions that every template has: range, namespace, dict, raise_exception and strftime_now.
// None looks at a clock: the time comes from outside.
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

// Whether `name` is one; strftime_now is none where no time is given.
bool HasFunction(std::string_view name, bool has_time);
// Expects one that is, except for namespace, which the interpreter makes and keeps.
Result<Value> CallFunction(std::string_view name, const Arguments& arguments,
                           const std::optional<std::tm>& now, Meter& meter);

// "%d %b %Y" as Python's strftime writes it in English.
Result<std::string> FormatTime(const std::string& format, const std::tm& time);

}  // namespace troupe::jinja
