// Knows what every layer will choose, from a recorded run: what prediction could be worth at most.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "expert/forecast/predictor.h"

namespace troupe {

class Oracle final : public Predictor {
 public:
  struct Step {
    std::uint32_t layer = 0;
    std::vector<ExpertDemand> chosen;
  };

  // `future` is what Chose will be called with, in that order.
  explicit Oracle(std::vector<Step> future);
  // The same, a step a call and none at the end: a future that is longer than memory. It is asked
  // for a step only when the one before has been chosen.
  explicit Oracle(std::function<std::optional<Step>()> future) : future_(std::move(future)) {}

  std::string_view name() const override { return "oracle"; }
  // Stops the program if the run is not the recorded one: its answers would mean nothing.
  void OnChosen(const LayerChoices& chosen) override;
  std::vector<Guess> Predict(std::uint32_t layer, std::uint32_t ahead,
                             const GateScores& forecast) override;

 private:
  const std::optional<Step>& Next();

  std::function<std::optional<Step>()> future_;
  std::optional<Step> next_;
};

}  // namespace troupe
