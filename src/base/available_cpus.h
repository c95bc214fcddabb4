// How many processors this process may keep busy: those it may run on, or the share of them that
// its cgroup's quota allows (v1 and v2), whichever is less.
#pragma once

#include <cstddef>
#include <string>

namespace troupe {

// At least one. `root` is where /proc and /sys are looked for: a test's folder, else empty.
std::size_t AvailableCpus(const std::string& root = "");

}  // namespace troupe
