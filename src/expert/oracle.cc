#include "expert/oracle.h"

#include <algorithm>

namespace troupe {

void Oracle::Chose(std::uint32_t layer, std::span<const ExpertDemand> chosen) {
  TROUPE_CHECK(next_ < future_.size() && future_[next_].layer == layer &&
               std::ranges::equal(future_[next_].chosen, chosen));
  ++next_;
}

std::vector<Guess> Oracle::Predict(std::uint32_t layer, std::uint32_t, const GateScores&) {
  if (next_ >= future_.size() || future_[next_].layer != layer) return {};
  std::vector<Guess> guesses;
  for (const ExpertDemand& chosen : future_[next_].chosen) {
    guesses.push_back(
        {.expert = chosen.expert, .weight = static_cast<float>(chosen.tokens), .expected = true});
  }
  std::ranges::stable_sort(guesses,
                           [](const Guess& a, const Guess& b) { return a.weight > b.weight; });
  return guesses;
}

}  // namespace troupe
