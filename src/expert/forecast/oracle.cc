#include "expert/forecast/oracle.h"

#include <algorithm>

namespace troupe {

Oracle::Oracle(std::vector<Step> future)
    : future_([steps = std::move(future), at = std::size_t{0}]() mutable -> std::optional<Step> {
        if (at == steps.size()) return std::nullopt;
        return steps[at++];
      }) {}

const std::optional<Oracle::Step>& Oracle::Next() {
  if (!next_) next_ = future_();
  return next_;
}

void Oracle::OnChosen(const LayerChoices& chosen) {
  TROUPE_CHECK(Next() && next_->layer == chosen.layer() &&
               std::ranges::equal(next_->chosen, chosen.demands()));
  next_.reset();
}

std::vector<Guess> Oracle::Predict(std::uint32_t layer, std::uint32_t, const GateScores&) {
  if (!Next() || next_->layer != layer) return {};
  std::vector<Guess> guesses;
  for (const ExpertDemand& chosen : next_->chosen) {
    guesses.push_back(
        {.expert = chosen.expert, .weight = static_cast<float>(chosen.tokens), .expected = true});
  }
  std::ranges::stable_sort(guesses,
                           [](const Guess& a, const Guess& b) { return a.weight > b.weight; });
  return guesses;
}

}  // namespace troupe
