// JSON pointers (RFC 6901): the place of a value within another, as "/servers/0/count".
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

// Members that are missing are made, and the element after an array's last, which is also called
// "-". An error names the part of the pointer that leads nowhere; what was made before it remains.
Status SetAt(Json& json, std::string_view pointer, Json value);

}  // namespace troupe
