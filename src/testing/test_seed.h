// The seed of a randomised test, and how many cases it makes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

// TROUPE_SEED from the environment, else a fixed seed; prints which, so that a failure can be
// replayed.
std::uint64_t TestSeed();

// TROUPE_CASES from the environment, else `usual`.
std::size_t TestCases(std::size_t usual);

}  // namespace troupe
