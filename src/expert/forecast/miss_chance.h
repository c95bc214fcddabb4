// How likely a layer is to ask for an expert that is not in memory. That it is not there says
// something by itself: the cache's policy thought little of it. So what a forecast says of absent
// experts is calibrated by what became of such experts before: a logistic regression for each
// distance, on the forecast's logit, its margin to the last that would be chosen, how often and how
// recently the layer chose the expert, and what its gate said when it was asked early. Learned
// while tokens pass. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "expert/expert_grid.h"
#include "expert/expert_id.h"
#include "expert/forecast/score_tables.h"

namespace troupe {

// What speaks for an expert, before anything is known of its being absent.
struct ExpertSigns {
  float logit = 0;       // of the forecast's chance
  float margin = 0;      // to the logit of the last that would be chosen
  float popularity = 0;  // logit of the share of the layer's passes that asked for it
  float age = 0;         // logarithm of the layer's passes since one did
  // Where the layer's gate was asked early: by how many standard deviations of its scores the
  // expert is above those that would not be chosen.
  float gate = 0;
  bool has_gate = false;
};

// How often, and when last, each expert was asked for.
class ExpertPopularity {
 public:
  static Bytes BytesFor(ExpertGrid grid) {
    return Bytes(grid.Count() * (sizeof(float) + sizeof(std::uint32_t)) +
                 grid.layers * sizeof(std::uint32_t));
  }

  // With `known`, every expert begins as often asked for as there, and as long ago as that makes
  // likely.
  ExpertPopularity(ExpertGrid grid, std::uint32_t experts_per_token,
                   const ScoreTables* known = nullptr);

  void OnAsked(std::uint32_t layer, std::span<const ExpertDemand> demands);
  void Describe(ExpertId id, ExpertSigns& signs) const;

 private:
  ExpertGrid grid_;
  std::vector<float> share_;         // running mean
  std::vector<std::uint32_t> last_;  // pass of the layer
  std::vector<std::uint32_t> passes_;
};

class MissChance {
 public:
  // Of what it has learned.
  static std::size_t NumberCount(std::uint32_t most_ahead) { return 2 * most_ahead * 2 * kTerms; }

  explicit MissChance(std::uint32_t most_ahead, const ScoreTables* known = nullptr);

  double Of(std::uint32_t ahead, const ExpertSigns& signs) const;
  // The expert was absent when that was said.
  void Learn(std::uint32_t ahead, const ExpertSigns& signs, bool asked);
  void CopyTo(ScoreTables& tables) const;
  // Whether the tables have learned what gates that are asked early are worth, too.
  static bool KnowsGates(const ScoreTables& tables);

 private:
  static constexpr std::size_t kTerms = 6;
  using Terms = std::array<float, kTerms>;

  struct Fit {
    Terms weights = {};
    Terms moments = {};
  };

  static Terms TermsOf(const ExpertSigns& signs);
  static double Chance(const Fit& fit, const Terms& terms);
  std::size_t FitOf(std::uint32_t ahead, const ExpertSigns& signs) const;

  std::vector<Fit> fits_;  // by distance, without a gate's forecast; then with one
};

}  // namespace troupe
