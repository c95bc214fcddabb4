// The seed of a randomised test.
#pragma once

#include <cstdint>

namespace troupe {

// TROUPE_SEED from the environment, else a fixed seed; prints which, so that a failure can be
// replayed.
std::uint64_t TestSeed();

}  // namespace troupe
