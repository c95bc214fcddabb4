// Chooses a token's experts from the router's logits: scores (softmax or sigmoid), selection with
// optional bias and groups, weights. Policies that prefer resident experts lie
// in higher layers. A few hundred numbers: scalar but for the exponentials.
//
// Selection is by score + bias, largest first, ties to the lowest index; a weight is the score
// itself. With groups (experts / groups adjacent experts each), only the best `groups_used` groups
// take part; a group's rank is its best score (kMax, DeepSeek-V2) or the sum of its two best
// (kTopTwo, DeepSeek-V3).
#pragma once

#include <cstdint>
#include <span>

#include "base/expert_choice.h"
#include "base/status.h"

namespace troupe {

inline constexpr std::uint32_t kMaxExperts = 1024;  // of a layer

enum class GateScore { kSoftmax, kSigmoid };
enum class GroupRank { kMax, kTopTwo };

struct TopExpertsParams {
  std::uint32_t experts = 0;
  std::uint32_t top_k = 0;
  GateScore score = GateScore::kSoftmax;
  bool normalise = false;  // weights are divided by their sum (but at least 2^-14)
  float scale = 1.0f;      // then multiplied by this
  std::uint32_t groups = 1;
  std::uint32_t groups_used = 1;
  GroupRank group_rank = GroupRank::kMax;
};

// Ok if the numbers fit together; call it when a model is read.
Status CheckTopExpertsParams(const TopExpertsParams& params);

// `scores` holds `experts` logits on entry and their scores on return (predictors and traces want
// all of them). `bias` is empty or one addend per expert, for selection alone. `chosen` has top_k
// places, filled best first. False, with scores and chosen unspecified, if a logit or bias is NaN
// or a logit infinite: the model's arithmetic has broken down.
[[nodiscard]] bool ChooseTopExperts(const TopExpertsParams& params, std::span<float> scores,
                                    std::span<const float> bias, std::span<ExpertChoice> chosen);

// The same where scores are known already.
[[nodiscard]] bool ChooseByScores(const TopExpertsParams& params, std::span<const float> scores,
                                  std::span<const float> bias, std::span<ExpertChoice> chosen);

}  // namespace troupe
