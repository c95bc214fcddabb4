#include "runtime/substituted_routing.h"

#include "model/expert_source.h"

namespace troupe {

SubstitutedRouting::SubstitutedRouting(SubstitutionChain chain, const RoutingFacts& facts)
    : chain_(std::move(chain)),
      facts_(facts),
      residence_(facts.experts),
      low_bit_(facts.low_copies ? facts.experts : 0, 1),
      choices_(facts.experts),
      least_(facts.experts) {}

void SubstitutedRouting::NoteRouted(std::span<const ExpertChoice> chosen) {
  std::ranges::fill(choices_, 0u);
  for (const ExpertChoice& choice : chosen) ++choices_[choice.expert];
  routed_.clear();
  for (std::uint32_t e = 0; e < facts_.experts; ++e) {
    if (choices_[e] > 0) routed_.push_back({.expert = e, .tokens = choices_[e]});
  }
}

SubstitutedRouting::Changes SubstitutedRouting::Answer(std::uint32_t layer,
                                                       const ExpertCache& cache,
                                                       std::span<const float> scores,
                                                       std::span<ExpertChoice> chosen) {
  NoteRouted(chosen);
  // A low copy is there for those who are content with it, and else as good as absent.
  for (std::uint32_t e = 0; e < facts_.experts; ++e) {
    const ExpertId id{layer, e};
    residence_[e] = cache.Find(id);
    if (residence_[e] != Residence::kAbsent && cache.CopyOf(id) != ExpertCopy::kFull) {
      residence_[e] = Residence::kAbsent;
    }
  }
  slots_.clear();
  for (const ExpertChoice& choice : chosen) slots_.push_back({choice.expert, choice.weight});
  const std::span<const SlotAnswer> answers = chain_.Answer({.layer = layer,
                                                             .experts = facts_.experts,
                                                             .top_k = facts_.top_k,
                                                             .normalised = facts_.normalised,
                                                             .chosen = slots_,
                                                             .scores = scores,
                                                             .residence = residence_,
                                                             .low_bit = low_bit_});
  Changes changes;
  std::ranges::fill(least_, ExpertCopy::kLow);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const SlotAnswer& answer = answers[i];
    if (answer.kind == AnswerKind::kDrop) {
      chosen[i] = {.expert = kNoExpert, .weight = 0};
      ++changes.dropped;
      continue;
    }
    if (answer.kind == AnswerKind::kSubstitute) ++changes.substituted;
    if (answer.kind != AnswerKind::kLowBit) least_[answer.expert] = ExpertCopy::kFull;
    chosen[i] = {.expert = answer.expert, .weight = answer.weight};
  }
  return changes;
}

}  // namespace troupe
