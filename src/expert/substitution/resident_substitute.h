// Controls that any policy of resident substitutes has to beat: the resident expert that the token
// scores highest, however low that is, and any resident expert, drawn at random. Both behind the
// gates of buddies where these are given.
#pragma once

#include "base/rng.h"
#include "expert/substitution/substitution_gates.h"

namespace troupe {

struct ResidentSubstituteCounts {
  std::uint64_t too_heavy = 0;      // slots
  std::uint64_t rho_closed = 0;     // slots
  std::uint64_t none_resident = 0;  // slots: every resident expert is the token's already
  std::uint64_t substituted = 0;

  bool operator==(const ResidentSubstituteCounts&) const = default;
};

class BestLiveScore final : public SubstitutionPolicy {
 public:
  struct Options {
    double most_share = 1;         // of the token's weight, that a replaced slot has
    std::uint32_t rho = kNoLimit;  // slots a token that are replaced
    SubstitutionGates::Options gates = {};
  };
  explicit BestLiveScore(const Options& options) : options_(options), gates_(options.gates) {}

  std::string_view name() const override { return "best-live"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  bool TakesOthers() const override { return true; }
  double BorderShare() const override { return kAnyScore; }
  std::vector<NamedCount> counts() const override;
  const ResidentSubstituteCounts& count() const { return counts_; }

 private:
  Options options_;
  SubstitutionGates gates_;
  ResidentSubstituteCounts counts_;
  std::uint64_t unknown_ = 0;  // slots of tokens whose scores were not known
};

class RandomResident final : public SubstitutionPolicy {
 public:
  struct Options {
    double most_share = 1;
    std::uint32_t rho = kNoLimit;
    std::uint64_t seed = 1;
    SubstitutionGates::Options gates = {};
  };
  explicit RandomResident(const Options& options)
      : options_(options), gates_(options.gates), rng_(options.seed) {}

  std::string_view name() const override { return "random"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  bool TakesOthers() const override { return true; }
  double BorderShare() const override { return kAnyScore; }
  std::vector<NamedCount> counts() const override;
  const ResidentSubstituteCounts& count() const { return counts_; }

 private:
  Options options_;
  SubstitutionGates gates_;
  Rng rng_;
  ResidentSubstituteCounts counts_;
  std::vector<std::uint32_t> candidates_;
};

}  // namespace troupe
