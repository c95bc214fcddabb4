// How often a guess that was not in memory came true, by how far ahead it was made and by its place
// in its list: what decides whether loading it is worth the link's time. Learned while tokens
// pass. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "expert/forecast/predictor.h"

namespace troupe {

class PrefetchOdds {
 public:
  // Lists are watched to a place of `places`; what comes later counts as the last of them.
  explicit PrefetchOdds(std::uint32_t places) : places_(std::max(1u, places)) {
    // Before anything was seen: as good as a plain guess one layer ahead mostly is.
    for (std::vector<float>& odds : odds_) odds.assign(places_, kAtFirst);
  }

  double Of(std::uint32_t ahead, std::size_t place) const {
    TROUPE_DCHECK(ahead >= 1 && ahead <= kMostLayersAhead);
    return odds_[ahead - 1][std::min<std::size_t>(place, places_ - 1)];
  }

  void OnOutcome(std::uint32_t ahead, std::size_t place, bool came_true) {
    float& odds = odds_[ahead - 1][std::min<std::size_t>(place, places_ - 1)];
    odds += kWeight * ((came_true ? 1.0f : 0.0f) - odds);
  }

 private:
  static constexpr float kAtFirst = 0.6f;
  static constexpr float kWeight = 0.05f;  // of the latest in a running mean

  std::size_t places_;
  std::array<std::vector<float>, kMostLayersAhead> odds_;
};

}  // namespace troupe
