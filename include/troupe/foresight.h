// How well it was foreseen which experts have to be loaded: counts that can be added.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace troupe {

// From how many layers ahead guesses are made at most.
inline constexpr std::size_t kForesightLayers = 5;

// What the guesses from one distance knew.
struct ForesightFrom {
  std::uint64_t named = 0;      // needed loads that were in the guess
  std::uint64_t likely = 0;     // of them: with odds of a half or more
  std::uint64_t guesses = 0;    // experts that were not in memory, guessed with such odds
  std::uint64_t came_true = 0;  // of them: that the layer asked for

  bool operator==(const ForesightFrom&) const = default;
};

// How well it was foreseen what has to be loaded. Of passes without rows of a prompt.
struct Foresight {
  // Asks that needed a load, on demand or ahead: the expert was absent, or on its way, or had been
  // read ahead. How many of them were in a guess, from whichever distance; in a likely one; and in
  // a likely one at least the time of a load before they were asked for.
  std::uint64_t needed = 0;
  std::uint64_t named = 0;
  std::uint64_t likely = 0;
  std::uint64_t in_time = 0;
  std::array<ForesightFrom, kForesightLayers> from = {};  // [0]: one layer ahead

  bool operator==(const Foresight&) const = default;
};

}  // namespace troupe
