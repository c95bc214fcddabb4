// The filters of Jinja that chat templates use: `value | name(arguments)`. Nothing is escaped for
// HTML by itself, only what `+` adds to a text that `safe` or `escape` made.
#pragma once

#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace troupe::jinja {

using Filter = Result<Value> (*)(const Value& value, const Arguments& arguments, Meter& meter);

struct NamedFilter {
  std::string_view name;
  Filter filter;
};

bool HasFilter(std::string_view name);
Result<Value> ApplyFilter(std::string_view name, const Value& value, const Arguments& arguments,
                          Meter& meter);

}  // namespace troupe::jinja
