// The day, for chat templates that write it into their prompts.
#pragma once

#include <string>

namespace troupe {

// "2026-11-23", in UTC: servers of one service agree.
std::string Today();

}  // namespace troupe
