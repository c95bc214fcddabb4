// How values print: Python's str() and repr().
#pragma once

#include <string>

#include "text/jinja/value.h"

namespace troupe::jinja {

// "0.1", "1e+16", "inf": the shortest that reads back as the same.
std::string PrintFloat(double number);

// What {{ value }} writes.
Result<MarkedText> Print(const Value& value, Meter& meter);
// "'it\\n'": as a string prints inside of a list.
Result<MarkedText> Represent(const Value& value, Meter& meter);

}  // namespace troupe::jinja
