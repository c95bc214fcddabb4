// Subscripts: value.name, value[key], value[from:to:step], and the views of a dict.
#pragma once

#include <string_view>

#include "text/jinja/value.h"

namespace troupe::jinja {

// Undefined for what is not there; fails only for what nothing can be asked of.
Result<Value> GetAttribute(const Value& value, std::string_view name, Meter& meter);
Result<Value> GetItem(const Value& value, const Value& key, Meter& meter);
// Each bound is none or a whole number.
Result<Value> GetSlice(const Value& value, const Value& from, const Value& to, const Value& step,
                       Meter& meter);

// `which` is "items", "keys" or "values".
Result<Value> DictView(const Dict& dict, std::string_view which, Meter& meter);

// "a.b.0", or the only key, as filters like map(attribute=...) take it. `otherwise`, unless it is
// none, stands for what is undefined at any step.
Result<Value> GetPath(const Value& value, const Value& path, const Value& otherwise, Meter& meter);

}  // namespace troupe::jinja
