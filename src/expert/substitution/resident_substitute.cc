#include "expert/substitution/resident_substitute.h"

#include <fmt/core.h>

#include "expert/substitution/drop_slots.h"

namespace troupe {
namespace {

template <typename Options>
std::string LimitsOf(const Options& options) {
  std::string text;
  if (options.most_share < 1) text += fmt::format(":most-share={}", options.most_share);
  if (options.rho != kNoLimit) text += fmt::format(":rho={}", options.rho);
  return text;
}

std::vector<NamedCount> Named(const ResidentSubstituteCounts& counts,
                              const SubstitutionGates& gates) {
  std::vector<NamedCount> named = {{"too_heavy", counts.too_heavy},
                                   {"rho_closed", counts.rho_closed},
                                   {"none_resident", counts.none_resident},
                                   {"substituted", counts.substituted}};
  gates.AddCounts(named);
  return named;
}

// Calls `answer(token, slot)` for every open slot behind the gates that is light enough, a token's
// least first, while rho allows.
template <typename Options, typename Answer>
void ForOpenSlots(LayerAnswers& layer, SubstitutionGates& gates, const Options& options,
                  ResidentSubstituteCounts& counts, const Answer& answer) {
  const AskedExperts asked = CountAsked(layer);
  if (asked.missing == 0 || !gates.PassMayChange(asked)) return;
  for (std::size_t token = 0; token < layer.tokens(); ++token) {
    if (!layer.HasOpen(token) || !gates.TokenMayChange(layer.routed(), token)) continue;
    for (std::uint32_t slot = layer.routed().top_k; slot-- > 0;) {
      if (!layer.Open(token, slot)) continue;
      if (WeightShare(layer.routed().Chosen(token), slot) > options.most_share) {
        ++counts.too_heavy;
      } else if (layer.Replaced(token) >= options.rho) {
        ++counts.rho_closed;
      } else {
        answer(token, slot);
      }
    }
  }
}

}  // namespace

std::string BestLiveScore::ToString() const {
  return "best-live" + gates_.ToString() + LimitsOf(options_);
}
std::vector<NamedCount> BestLiveScore::counts() const {
  std::vector<NamedCount> counts = Named(counts_, gates_);
  counts.push_back({"unknown", unknown_});
  return counts;
}

void BestLiveScore::Answer(LayerAnswers& layer) {
  ForOpenSlots(layer, gates_, options_, counts_, [&](std::size_t token, std::uint32_t slot) {
    const std::span<const float> scores = layer.routed().Scores(token);
    if (scores.empty()) {
      ++unknown_;
      return;
    }
    std::uint32_t best = kNoLimit;
    for (std::uint32_t e = 0; e < scores.size(); ++e) {
      if (best != kNoLimit && scores[e] <= scores[best]) continue;
      if (layer.Resident(e) && layer.NewTo(token, e)) best = e;
    }
    if (best == kNoLimit) {
      ++counts_.none_resident;
      return;
    }
    ++counts_.substituted;
    layer.Substitute(token, slot, best, SubstituteWeight::kOfItsScore);
  });
}

std::string RandomResident::ToString() const {
  return "random" + gates_.ToString() + LimitsOf(options_) +
         (options_.seed == Options{}.seed ? std::string() : fmt::format(":seed={}", options_.seed));
}
std::vector<NamedCount> RandomResident::counts() const { return Named(counts_, gates_); }

void RandomResident::Answer(LayerAnswers& layer) {
  ForOpenSlots(layer, gates_, options_, counts_, [&](std::size_t token, std::uint32_t slot) {
    candidates_.clear();
    for (std::uint32_t e = 0; e < layer.routed().experts; ++e) {
      if (layer.Resident(e) && layer.NewTo(token, e)) candidates_.push_back(e);
    }
    if (candidates_.empty()) {
      ++counts_.none_resident;
      return;
    }
    ++counts_.substituted;
    layer.Substitute(token, slot, candidates_[rng_.Below(candidates_.size())],
                     SubstituteWeight::kOfTheSlot);
  });
}

}  // namespace troupe
