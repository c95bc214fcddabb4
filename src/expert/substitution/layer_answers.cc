#include "expert/substitution/layer_answers.h"

#include <algorithm>

#include "base/check.h"

namespace troupe {

void LayerAnswers::Reset(const RoutedLayer& routed) {
  TROUPE_CHECK(routed.top_k > 0 && routed.chosen.size() % routed.top_k == 0);
  TROUPE_CHECK(routed.residence.size() == routed.experts);
  TROUPE_CHECK(routed.scores.empty() ||
               routed.scores.size() == routed.tokens() * std::size_t{routed.experts});
  TROUPE_CHECK(routed.low_bit.empty() || routed.low_bit.size() == routed.experts);
  routed_ = &routed;
  answers_.resize(routed.chosen.size());
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    TROUPE_CHECK(routed.chosen[i].expert < routed.experts);
    answers_[i] = {.expert = routed.chosen[i].expert, .weight = routed.chosen[i].weight};
  }
  substitute_weights_.assign(answers_.size(), SubstituteWeight::kOfTheSlot);
  dropped_weights_.assign(answers_.size(), DroppedWeight::kLost);
  replaced_.assign(routed.tokens(), 0);
  pledged_.assign(routed.experts, false);
}

bool LayerAnswers::Missing(std::uint32_t expert) const {
  return routed_->residence[expert] == Residence::kAbsent;
}

bool LayerAnswers::Open(std::size_t token, std::uint32_t slot) const {
  const SlotAnswer& answer = At(token, slot);
  return answer.kind == AnswerKind::kKeep && Missing(answer.expert) && !pledged_[answer.expert];
}

bool LayerAnswers::HasOpen(std::size_t token) const {
  for (std::uint32_t slot = 0; slot < routed_->top_k; ++slot) {
    if (Open(token, slot)) return true;
  }
  return false;
}

bool LayerAnswers::NewTo(std::size_t token, std::uint32_t expert) const {
  for (std::uint32_t slot = 0; slot < routed_->top_k; ++slot) {
    if (routed_->Chosen(token)[slot].expert == expert || At(token, slot).expert == expert) {
      return false;
    }
  }
  return true;
}

void LayerAnswers::Substitute(std::size_t token, std::uint32_t slot, std::uint32_t expert,
                              SubstituteWeight weight) {
  SlotAnswer& answer = At(token, slot);
  TROUPE_CHECK(answer.kind == AnswerKind::kKeep);
  TROUPE_CHECK(Resident(expert) || pledged_[expert]);
  TROUPE_CHECK(NewTo(token, expert));
  answer.kind = AnswerKind::kSubstitute;
  answer.expert = expert;
  substitute_weights_[token * routed_->top_k + slot] = weight;
  ++replaced_[token];
}

void LayerAnswers::TakeLowBit(std::size_t token, std::uint32_t slot) {
  SlotAnswer& answer = At(token, slot);
  TROUPE_CHECK(answer.kind == AnswerKind::kKeep);
  TROUPE_CHECK(!routed_->low_bit.empty() && routed_->low_bit[answer.expert] != 0);
  answer.kind = AnswerKind::kLowBit;
}

void LayerAnswers::Drop(std::size_t token, std::uint32_t slot, DroppedWeight weight) {
  SlotAnswer& answer = At(token, slot);
  TROUPE_CHECK(answer.kind == AnswerKind::kKeep);
  answer.kind = AnswerKind::kDrop;
  dropped_weights_[token * routed_->top_k + slot] = weight;
  ++replaced_[token];
}

void LayerAnswers::Restore(std::size_t token, std::uint32_t slot) {
  SlotAnswer& answer = At(token, slot);
  if (answer.kind == AnswerKind::kSubstitute || answer.kind == AnswerKind::kDrop) {
    --replaced_[token];
  }
  // No substitute is among the token's chosen experts: its own expert is free to come back.
  answer.expert = routed_->Chosen(token)[slot].expert;
  answer.kind = AnswerKind::kKeep;
}

// A kept slot weighs what it did, a substitute what its rule says. In models that divide by the sum
// the substitutes' own scores change the sum, and a dropped slot's weight may be shared out: in
// both cases all are scaled to the sum that the router meant, less what is lost.
void LayerAnswers::Weigh(std::size_t token) {
  const std::span<const ExpertChoice> chosen = routed_->Chosen(token);
  const std::span<const float> scores = routed_->Scores(token);
  // Weights are scores times one number a token: the largest tells it best, and a bias on the
  // selection may have put it anywhere.
  const ExpertChoice& largest = *std::ranges::max_element(chosen, {}, &ExpertChoice::weight);
  const float score = scores.empty() ? 0.0f : scores[largest.expert];
  const float unit = score > 0 ? largest.weight / score : 0.0f;
  bool scaled = false;
  double meant = 0, sum = 0;
  for (std::uint32_t slot = 0; slot < routed_->top_k; ++slot) {
    SlotAnswer& answer = At(token, slot);
    const std::size_t place = token * routed_->top_k + slot;
    answer.weight = chosen[slot].weight;
    if (answer.kind == AnswerKind::kDrop) {
      const bool shared = dropped_weights_[place] == DroppedWeight::kShared;
      scaled = scaled || shared;
      if (shared) meant += chosen[slot].weight;
      answer.weight = 0;
      continue;
    }
    if (answer.kind == AnswerKind::kSubstitute && unit > 0 &&
        substitute_weights_[place] == SubstituteWeight::kOfItsScore) {
      answer.weight = unit * scores[answer.expert];
      scaled = scaled || routed_->normalised;
      if (!routed_->normalised) meant += static_cast<double>(answer.weight) - chosen[slot].weight;
    }
    meant += chosen[slot].weight;
    sum += answer.weight;
  }
  if (!scaled || !(sum > 0)) return;
  const auto factor = static_cast<float>(meant / sum);
  for (std::uint32_t slot = 0; slot < routed_->top_k; ++slot) At(token, slot).weight *= factor;
}

std::span<const SlotAnswer> LayerAnswers::Finish() {
  for (std::size_t token = 0; token < tokens(); ++token) {
    if (replaced_[token] > 0) Weigh(token);
  }
  return answers_;
}

}  // namespace troupe
