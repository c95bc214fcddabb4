// Which commit this program was built from. Its source is written by the build, for the programs
// alone, so that a commit compiles one file and links twice.
#pragma once

#include <string_view>

namespace troupe {

// "a166fdad5e21", with "+changes" if the tree had changes beside it; "unknown" without git.
std::string_view Commit();

}  // namespace troupe
