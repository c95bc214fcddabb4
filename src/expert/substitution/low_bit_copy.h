// A missing expert's copy of fewer bits instead of itself: fewer bytes to wait for, at a loss that
// is small where the slot weighs little. The store knows which experts have such a copy.
#pragma once

#include "expert/substitution/substitution_policy.h"

namespace troupe {

class LowBitCopy final : public SubstitutionPolicy {
 public:
  struct Options {
    double most_share = 1;  // of the token's weight, that the slot has
  };
  struct Counts {
    std::uint64_t no_copy = 0;    // slots
    std::uint64_t too_heavy = 0;  // slots
    std::uint64_t taken = 0;

    bool operator==(const Counts&) const = default;
  };
  explicit LowBitCopy(const Options& options) : options_(options) {}

  std::string_view name() const override { return "low-bit"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  double BorderShare() const override { return options_.most_share >= 1 ? kAnyScore : 0; }
  bool NeedsLowCopies() const override { return true; }
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }

 private:
  Options options_;
  Counts counts_;
};

}  // namespace troupe
