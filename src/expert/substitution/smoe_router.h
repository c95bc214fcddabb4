// SMoE's expert-cache router (Zhu et al., Algorithm 1): a missing expert whose score is hardly
// above that of the best one not chosen gives way to one in memory whose score is hardly below it.
// The windows are a share alpha of that boundary score, (k+1)-th of the token. Top scores stay.
// Experts that another token of the pass needs for its top scores will be there, too, and serve as
// well.
//
// Where print and prose of the paper differ, docs/design/substitution.md says what was chosen.
#pragma once

#include "expert/substitution/substitution_policy.h"

namespace troupe {

class SmoeRouter final : public SubstitutionPolicy {
 public:
  struct Options {
    double alpha = 0.3;  // 0 leaves everything as it is; the paper uses 0.25 to 0.35
  };
  struct Counts {
    std::uint64_t top_score = 0;          // slots above the window
    std::uint64_t low_score = 0;          // slots in it
    std::uint64_t low_score_missing = 0;  // those that look for a substitute
    std::uint64_t shared = 0;             // kept: another token's top score brings the expert
    std::uint64_t substituted = 0;
    std::uint64_t borrowed = 0;   // of those: by an expert that another token's top score brings
    std::uint64_t none_near = 0;  // no substitute was left in the window
    std::uint64_t unknown = 0;    // tokens whose scores were not known

    bool operator==(const Counts&) const = default;
  };

  explicit SmoeRouter(const Options& options) : options_(options) {}

  std::string_view name() const override { return "smoe"; }
  std::string ToString() const override;
  void Answer(LayerAnswers& layer) override;
  bool TakesOthers() const override { return true; }
  double BorderShare() const override { return options_.alpha; }
  std::vector<NamedCount> counts() const override;
  const Counts& count() const { return counts_; }

 private:
  void PledgeTopScores(LayerAnswers& layer);
  void AnswerToken(LayerAnswers& layer, std::size_t token);

  Options options_;
  Counts counts_;
  std::vector<float> boundaries_;          // [token]: the score of the best expert not chosen
  std::vector<bool> top_;                  // [expert]: some token's top score
  std::vector<std::uint32_t> open_;        // slots that look for a substitute, best first
  std::vector<std::uint32_t> candidates_;  // best first
};

// Of a token: the best score among the experts that it did not choose, which without a bias on the
// selection is the (k+1)-th. Negative if it chose all.
float BoundaryScore(std::span<const ExpertChoice> chosen, std::span<const float> scores);

}  // namespace troupe
