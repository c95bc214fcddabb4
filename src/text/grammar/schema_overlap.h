// Whether two schemas can have a value in common, as oneOf must know: a value that satisfies two of
// its branches satisfies none.
#pragma once

#include "base/status.h"
#include "text/grammar/schema_needs.h"

namespace troupe {

// True only if no value that is generated for one satisfies the other. False if that cannot be seen
// from types, values, bounds, and properties that one requires and the other forbids or wants
// otherwise.
Result<bool> AreDisjoint(const SchemaNeeds& a, const SchemaNeeds& b, SchemaReader& reader);

}  // namespace troupe
