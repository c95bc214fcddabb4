// The methods of strings and dicts that a template may call. None changes its object: Jinja's
// sandbox refuses those that would, such as list.append.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

bool HasMethod(const Value& value, std::string_view name);
// Expects a method that the value has.
Result<Value> CallMethod(const Value& self, std::string_view name, const Arguments& arguments,
                         Meter& meter);

}  // namespace troupe::jinja
