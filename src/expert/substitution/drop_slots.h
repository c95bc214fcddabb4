// Answers that compute less: missing experts left out (zero fill, its weight lost or shared), and
// the control that runs the model with fewer experts a token, wherever they are. Both behind the
// gates of buddies where these are given.
#pragma once

#include "expert/substitution/substitution_gates.h"

namespace troupe {

class DropMissing final : public SubstitutionPolicy {
 public:
  struct Options {
    DroppedWeight weight = DroppedWeight::kLost;
    double most_share = 1;         // of the token's weight, that a dropped slot has
    std::uint32_t rho = kNoLimit;  // slots a token that are replaced or dropped
    SubstitutionGates::Options gates = {};
  };
  struct Counts {
    std::uint64_t too_heavy = 0;   // slots
    std::uint64_t rho_closed = 0;  // slots
    std::uint64_t dropped = 0;

    bool operator==(const Counts&) const = default;
  };
  explicit DropMissing(const Options& options) : options_(options), gates_(options.gates) {}

  std::string_view name() const override { return "drop"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  double BorderShare() const override { return options_.most_share >= 1 ? kAnyScore : 0; }
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }

 private:
  Options options_;
  SubstitutionGates gates_;
  Counts counts_;
};

class SmallerTopK final : public SubstitutionPolicy {
 public:
  struct Options {
    std::uint32_t keep = 1;  // slots a token
    double most_share = 1;   // of the token's weight, that a dropped slot has
    SubstitutionGates::Options gates = {};
  };
  struct Counts {
    std::uint64_t too_heavy = 0;  // slots
    std::uint64_t dropped = 0;
    std::uint64_t dropped_resident = 0;  // of those: experts that were there

    bool operator==(const Counts&) const = default;
  };
  explicit SmallerTopK(const Options& options) : options_(options), gates_(options.gates) {}

  std::string_view name() const override { return "top"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }

 private:
  Options options_;
  SubstitutionGates gates_;
  Counts counts_;
};

// The slot's share of all the weight of its token.
double WeightShare(std::span<const ExpertChoice> chosen, std::uint32_t slot);

}  // namespace troupe
