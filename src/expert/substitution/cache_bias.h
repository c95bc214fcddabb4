// Ranks a token's experts anew with a bonus for those in memory, a share of the distance between
// its highest and its lowest score: what gets in with the bonus takes the place of what falls out.
// A control and a rival: it needs neither profile nor list.
#pragma once

#include "expert/substitution/substitution_policy.h"

namespace troupe {

class CacheBias final : public SubstitutionPolicy {
 public:
  struct Options {
    double bonus = 0.1;            // of the token's range of scores; 0 leaves everything as it is
    std::uint32_t rho = kNoLimit;  // slots a token that are replaced
  };
  struct Counts {
    std::uint64_t unknown = 0;       // tokens whose scores were not known
    std::uint64_t out_of_reach = 0;  // slots whose score no resident expert reached with the bonus
    std::uint64_t rho_closed = 0;    // slots
    std::uint64_t substituted = 0;

    bool operator==(const Counts&) const = default;
  };
  explicit CacheBias(const Options& options) : options_(options) {}

  std::string_view name() const override { return "bias"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  bool TakesOthers() const override { return true; }
  double BorderShare() const override { return kAnyScore; }
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }

 private:
  void AnswerToken(LayerAnswers& layer, std::size_t token);

  Options options_;
  Counts counts_;
  std::vector<std::uint32_t> candidates_;  // best first
};

}  // namespace troupe
