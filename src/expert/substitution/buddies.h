// BuddyMoE's replacement (Wang et al., Algorithm 1 behind the gates of section 3.1): a missing
// expert gives way to a resident one that tokens often choose with it, if the token spreads its
// weight (tau, gamma), if not too much of the pass is missing (beta), and so often a token at most
// (rho). docs/design/substitution.md says what was chosen where the paper leaves room.
#pragma once

#include <memory>

#include "expert/substitution/buddy_lists.h"
#include "expert/substitution/substitution_gates.h"

namespace troupe {

class Buddies final : public SubstitutionPolicy {
 public:
  struct Options {
    SubstitutionGates::Options gates = {.tau = 0.5};
    std::uint32_t rho = 3;    // slots a token that are replaced, whoever replaces them
    std::uint32_t rank = 16;  // of a list, how many are looked at: H
    double eta = 0;           // how much the token's own score of a buddy counts
    // The token's slots from the best to the least, as printed; else the least first, so that rho
    // is spent where it costs least.
    bool best_first = false;
  };
  struct Counts {
    std::uint64_t rho_closed = 0;     // slots
    std::uint64_t no_list = 0;        // slots whose expert has no buddies
    std::uint64_t none_resident = 0;  // slots none of whose buddies was there and free
    std::uint64_t substituted = 0;

    bool operator==(const Counts&) const = default;
  };

  Buddies(std::shared_ptr<const BuddyLists> lists, Options options);

  std::string_view name() const override { return "buddies"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  bool TakesOthers() const override { return true; }
  double BorderShare() const override { return kAnyScore; }
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }
  const SubstitutionGates& gates() const { return gates_; }

 private:
  void AnswerSlot(LayerAnswers& layer, std::size_t token, std::uint32_t slot);

  std::shared_ptr<const BuddyLists> lists_;
  Options options_;
  SubstitutionGates gates_;
  Counts counts_;
};

}  // namespace troupe
