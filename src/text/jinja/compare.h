// Equality, order and membership, as Python's operators ==, <, in.
#pragma once

#include "text/jinja/value.h"

namespace troupe::jinja {

Result<bool> Equal(const Value& a, const Value& b, Meter& meter);
// a < b; fails for kinds that have no order between them.
Result<bool> Less(const Value& a, const Value& b, Meter& meter);
// a < b, a <= b, a > b or a >= b. NaN is in no order.
Result<bool> CompareOrder(std::string_view sign, const Value& a, const Value& b, Meter& meter);
// item in container.
Result<bool> Contains(const Value& container, const Value& item, Meter& meter);
// `a is sameas b`: one object, or equal and of a kind without identity.
bool Same(const Value& a, const Value& b);

}  // namespace troupe::jinja
