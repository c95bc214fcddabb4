// The operators + - * / // % ** and ~, as Python has them on numbers, strings and lists. Whole
// numbers have 64 bits: what does not fit fails.
#pragma once

#include <string_view>

#include "text/jinja/value.h"

namespace troupe::jinja {

// `sign` is the operator as it is written, except for ~.
Result<Value> Compute(std::string_view sign, const Value& a, const Value& b, Meter& meter);
Result<Value> Negate(const Value& value);
// Of all operands, as they print.
Result<Value> Join(const Values& parts, Meter& meter);

}  // namespace troupe::jinja
