#include "expert/flow/substituted_routing.h"

#include <algorithm>

namespace troupe {
namespace {

bool MayChange(const RowGroupFacts& group) { return group.phase == Phase::kDecode && !group.exact; }

}  // namespace

SubstitutedRouting::SubstitutedRouting(SubstitutionChain chain, const RoutingFacts& facts)
    : chain_(std::move(chain)),
      facts_(facts),
      residence_(facts.experts),
      low_bit_(facts.low_copies ? facts.experts : 0, 1),
      least_(facts.experts) {}

bool SubstitutedRouting::AppliesTo(const PassFacts& pass) const {
  return pass.RowsIn(Phase::kDecode) <= chain_.limits().most_tokens &&
         std::ranges::any_of(pass.groups, MayChange);
}

// A low copy is there for those who are content with it, and else as good as absent.
void SubstitutedRouting::NoteResidence(std::uint32_t layer, const ExpertCache& cache) {
  for (std::uint32_t e = 0; e < facts_.experts; ++e) {
    const ExpertId id{layer, e};
    residence_[e] = cache.Find(id);
    if (residence_[e] != Residence::kAbsent && cache.CopyOf(id) != ExpertCopy::kFull) {
      residence_[e] = Residence::kAbsent;
    }
  }
}

void SubstitutedRouting::Gather(const PassFacts& pass, std::span<const float> scores,
                                std::span<const ExpertChoice> chosen) {
  slots_.clear();
  scores_.clear();
  std::size_t row = 0;
  for (const RowGroupFacts& group : pass.groups) {
    const auto mine = chosen.subspan(row * facts_.top_k, group.rows * facts_.top_k);
    if (MayChange(group)) {
      slots_.insert(slots_.end(), mine.begin(), mine.end());
      if (!scores.empty()) {
        const auto rows = scores.subspan(row * facts_.experts, group.rows * facts_.experts);
        scores_.insert(scores_.end(), rows.begin(), rows.end());
      }
    } else {
      for (const ExpertChoice& choice : mine) {
        Residence& residence = residence_[choice.expert];
        if (residence == Residence::kAbsent) residence = Residence::kLoading;
      }
    }
    row += group.rows;
  }
}

std::span<const RoutingChanges> SubstitutedRouting::Answer(std::uint32_t layer,
                                                           const PassFacts& pass,
                                                           const ExpertCache& cache,
                                                           std::span<const float> scores,
                                                           std::span<ExpertChoice> chosen) {
  TROUPE_CHECK(chosen.size() == std::size_t{pass.rows()} * facts_.top_k);
  NoteResidence(layer, cache);
  Gather(pass, scores, chosen);
  const std::span<const SlotAnswer> answers = chain_.Answer({.layer = layer,
                                                             .experts = facts_.experts,
                                                             .top_k = facts_.top_k,
                                                             .normalised = facts_.normalised,
                                                             .chosen = slots_,
                                                             .scores = scores_,
                                                             .residence = residence_,
                                                             .low_bit = low_bit_});
  changes_.assign(pass.groups.size(), {});
  std::ranges::fill(least_, ExpertCopy::kLow);
  std::size_t at = 0, next = 0;  // slots of the pass, answers
  for (std::size_t g = 0; g < pass.groups.size(); ++g) {
    const std::size_t slots = std::size_t{pass.groups[g].rows} * facts_.top_k;
    for (std::size_t i = 0; MayChange(pass.groups[g]) && i < slots; ++i) {
      const SlotAnswer& answer = answers[next++];
      changes_[g].dropped += answer.kind == AnswerKind::kDrop ? 1 : 0;
      changes_[g].substituted += answer.kind == AnswerKind::kSubstitute ? 1 : 0;
      if (answer.kind == AnswerKind::kDrop) {
        chosen[at + i] = {.expert = kNoExpert, .weight = 0};
        continue;
      }
      if (answer.kind != AnswerKind::kLowBit) least_[answer.expert] = ExpertCopy::kFull;
      chosen[at + i] = {.expert = answer.expert, .weight = answer.weight};
    }
    at += slots;
  }
  return changes_;
}

}  // namespace troupe
