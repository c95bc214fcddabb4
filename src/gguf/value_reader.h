// Reads one metadata value of a given type at a cursor.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "gguf/cursor.h"
#include "gguf/value.h"

namespace troupe {

// The type's number, checked.
Result<ValueType> ReadValueType(Cursor& cursor);
Result<Value> ReadValue(Cursor& cursor, ValueType type);

}  // namespace troupe
