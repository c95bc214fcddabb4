// The version of the library; the headers' and the build's must be one.
#include <troupe/version.h>

namespace troupe {

static_assert(std::string_view(TROUPE_VERSION) == TROUPE_PROJECT_VERSION,
              "include/troupe/version.h and the project's version in CMakeLists.txt differ");

std::string_view Version() { return TROUPE_VERSION; }

}  // namespace troupe
