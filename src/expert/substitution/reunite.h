// Takes back what saves nothing: where one token waits for its expert, every other token of the
// pass that chose the same one may have it, too. The last link of a chain; without effect on passes
// of one token.
#pragma once

#include "expert/substitution/substitution_policy.h"

namespace troupe {

class Reunite final : public SubstitutionPolicy {
 public:
  std::string_view name() const override { return "reunite"; }
  std::string ToString() const override { return "reunite"; }
  void Answer(LayerAnswers& layer) override;
  std::vector<NamedCount> counts() const override { return {{"restored", restored_}}; }

 private:
  std::uint64_t restored_ = 0;
  std::vector<bool> kept_;  // [expert]: some token waits for it
};

}  // namespace troupe
