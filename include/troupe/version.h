// The version of the library these headers belong to.
#pragma once

#include <string_view>

#define TROUPE_VERSION "0.1.0"

namespace troupe {

// That of the library which is linked: the same as TROUPE_VERSION unless headers and library come
// from different installations.
std::string_view Version();

}  // namespace troupe
