// "%s costs %.2f" % values: the part of Python's formatting that templates use.
#pragma once

#include "text/jinja/value.h"

namespace troupe::jinja {

// `values` is a tuple, or the only value. Knows %s %r %d %i %f %% with width and precision.
Result<Value> FormatText(const MarkedText& format, const Value& values, Meter& meter);

}  // namespace troupe::jinja
