#include "expert/forecast/miss_chance.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe {
namespace {

constexpr float kLatestUse = 0.02f;  // its weight in a running mean
constexpr float kFitStep = 0.2f;
constexpr float kFitMomentKept = 1 - 1 / 50'000.0f;

}  // namespace

ExpertPopularity::ExpertPopularity(ExpertGrid grid, std::uint32_t experts_per_token,
                                   const ScoreTables* known)
    : grid_(grid),
      share_(grid.Count(), std::min(0.9f, static_cast<float>(experts_per_token) /
                                              static_cast<float>(std::max(1u, grid.experts)))),
      last_(grid.Count()),
      passes_(grid.layers) {
  if (known == nullptr) return;
  constexpr std::uint32_t kLongAgo = 10'000;  // passes
  TROUPE_CHECK(known->shares.size() == share_.size());
  share_ = known->shares;
  std::ranges::fill(passes_, kLongAgo);
  for (std::size_t i = 0; i < last_.size(); ++i) {
    last_[i] = kLongAgo - static_cast<std::uint32_t>(1 / std::max(share_[i], 1.0f / kLongAgo));
  }
}

void ExpertPopularity::OnAsked(std::uint32_t layer, std::span<const ExpertDemand> demands) {
  const std::size_t first = grid_.Index({layer, 0});
  for (std::uint32_t e = 0; e < grid_.experts; ++e) share_[first + e] *= 1 - kLatestUse;
  const std::uint32_t pass = ++passes_[layer];
  for (const ExpertDemand& demand : demands) {
    share_[first + demand.expert] += kLatestUse;
    last_[first + demand.expert] = pass;
  }
}

void ExpertPopularity::Describe(ExpertId id, ExpertSigns& signs) const {
  const std::size_t index = grid_.Index(id);
  const float share = std::clamp(share_[index], 1e-4f, 1 - 1e-4f);
  signs.popularity = std::log(share / (1 - share));
  signs.age = std::log1p(static_cast<float>(passes_[id.layer] - last_[index]));
}

MissChance::Terms MissChance::TermsOf(const ExpertSigns& signs) {
  // Of a size, so that one step fits all.
  return {1,
          std::clamp(signs.logit, -8.0f, 8.0f),
          std::clamp(signs.margin, -8.0f, 8.0f) / 2,
          std::clamp(signs.popularity, -8.0f, 8.0f) / 2,
          std::min(signs.age, 8.0f) / 2,
          std::clamp(signs.gate, -4.0f, 4.0f)};
}

double MissChance::Chance(const Fit& fit, const Terms& terms) {
  float logit = 0;
  for (std::size_t i = 0; i < kTerms; ++i) logit += fit.weights[i] * terms[i];
  return 1 / (1 + std::exp(-static_cast<double>(std::clamp(logit, -12.0f, 12.0f))));
}

// To begin with the forecast's own chance. A gate is worth something before anything was learned.
MissChance::MissChance(std::uint32_t most_ahead, const ScoreTables* known)
    : fits_(2 * std::size_t{most_ahead}) {
  if (known != nullptr) {
    TROUPE_CHECK(known->fits.size() == NumberCount(most_ahead));
    auto from = known->fits.begin();
    for (Fit& fit : fits_) {
      for (Terms* terms : {&fit.weights, &fit.moments}) {
        std::copy_n(from, kTerms, terms->begin());
        from += kTerms;
      }
    }
    return;
  }
  for (std::size_t i = 0; i < fits_.size(); ++i) {
    fits_[i].weights = i < most_ahead ? Terms{0, 1, 0, 0, 0, 0} : Terms{-0.5f, 0.5f, 0, 0, 0, 1.5f};
    fits_[i].moments.fill(1);
  }
}

std::size_t MissChance::FitOf(std::uint32_t ahead, const ExpertSigns& signs) const {
  TROUPE_DCHECK(ahead >= 1 && ahead <= fits_.size() / 2);
  return ahead - 1 + (signs.has_gate ? fits_.size() / 2 : 0);
}

double MissChance::Of(std::uint32_t ahead, const ExpertSigns& signs) const {
  return Chance(fits_[FitOf(ahead, signs)], TermsOf(signs));
}

void MissChance::Learn(std::uint32_t ahead, const ExpertSigns& signs, bool asked) {
  Fit& fit = fits_[FitOf(ahead, signs)];
  const Terms terms = TermsOf(signs);
  const auto error = static_cast<float>((asked ? 1.0 : 0.0) - Chance(fit, terms));
  for (std::size_t i = 0; i < kTerms; ++i) {
    const float slope = error * terms[i];
    fit.moments[i] = kFitMomentKept * fit.moments[i] + slope * slope;
    fit.weights[i] += kFitStep * slope / std::sqrt(fit.moments[i]);
  }
}

bool MissChance::KnowsGates(const ScoreTables& tables) {
  ScoreTables fresh;
  MissChance(static_cast<std::uint32_t>(tables.fits.size() / NumberCount(1))).CopyTo(fresh);
  const std::size_t without = fresh.fits.size() / 2;
  return !std::ranges::equal(std::span(tables.fits).subspan(without),
                             std::span(fresh.fits).subspan(without));
}

void MissChance::CopyTo(ScoreTables& tables) const {
  tables.fits.clear();
  for (const Fit& fit : fits_) {
    for (const Terms* terms : {&fit.weights, &fit.moments}) {
      tables.fits.insert(tables.fits.end(), terms->begin(), terms->end());
    }
  }
}

}  // namespace troupe
