// How far epochs of plans may go, whoever says them: a peer in its hello, a leader by a link, or a
// record in the store. The next plan needs a greater one than all that count.
#pragma once

#include <cstdint>

namespace troupe {

// The word of one node for more makes no plan newer: that would leave no epochs to the plans to
// come, which must all be below the second. What most of the others tell does, and a little more.
inline constexpr std::uint64_t kMostTellableEpoch = std::uint64_t{1} << 52;
inline constexpr std::uint64_t kMostEpoch = 2 * kMostTellableEpoch;

}  // namespace troupe
