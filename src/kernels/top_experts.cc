#include "kernels/top_experts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/softmax.h"

namespace troupe {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kAbsurd = 1e30f;  // a logit or a bias beyond this comes from broken arithmetic
// Sigmoids may all underflow. The bound is ggml's (the least normal half), for equal answers.
constexpr float kLeastSum = 0x1p-14f;

// Selection keys of all experts; kNever for those that may not be chosen (again).
using Keys = std::array<float, kMaxExperts>;

// The lowest index of the largest key.
std::uint32_t Best(std::span<const float> keys) {
  return static_cast<std::uint32_t>(ArgMax(keys.data(), keys.size()));
}

// The two largest keys in one pass.
float RankOfGroup(GroupRank rank, std::span<const float> keys) {
  float best = kNever, second = kNever;
  for (float key : keys) {
    second = std::max(second, std::min(best, key));
    best = std::max(best, key);
  }
  return rank == GroupRank::kMax ? best : best + second;
}

// Group-limited routing of DeepSeek-V2 and V3: experts outside the best groups cannot be chosen.
void KeepBestGroups(const TopExpertsParams& params, std::span<float> keys) {
  const std::uint32_t group_size = params.experts / params.groups;
  Keys ranks;
  for (std::uint32_t g = 0; g < params.groups; ++g) {
    ranks[g] = RankOfGroup(params.group_rank, keys.subspan(g * group_size, group_size));
  }
  std::array<bool, kMaxExperts> kept{};
  for (std::uint32_t n = 0; n < params.groups_used; ++n) {
    const std::uint32_t g = Best(std::span(ranks).first(params.groups));
    kept[g] = true;
    ranks[g] = kNever;
  }
  for (std::uint32_t e = 0; e < params.experts; ++e) {
    if (!kept[e / group_size]) keys[e] = kNever;
  }
}

void FinishWeights(const TopExpertsParams& params, std::span<ExpertChoice> chosen) {
  if (params.normalise) {
    float sum = 0;
    for (const ExpertChoice& choice : chosen) sum += choice.weight;
    sum = std::max(sum, kLeastSum);
    for (ExpertChoice& choice : chosen) choice.weight /= sum;
  }
  for (ExpertChoice& choice : chosen) choice.weight *= params.scale;
}

bool AllSane(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(),
                     [](float v) { return std::abs(v) < kAbsurd; });  // false for NaN
}

}  // namespace

Status CheckTopExpertsParams(const TopExpertsParams& params) {
  if (params.experts == 0 || params.experts > kMaxExperts) {
    return InvalidArgument("{} experts, 1 to {} expected", params.experts, kMaxExperts);
  }
  if (params.groups == 0 || params.experts % params.groups != 0) {
    return InvalidArgument("{} expert groups, a divisor of {} experts expected", params.groups,
                           params.experts);
  }
  if (params.groups_used == 0 || params.groups_used > params.groups) {
    return InvalidArgument("{} expert groups used, 1 to {} expected", params.groups_used,
                           params.groups);
  }
  const std::uint32_t group_size = params.experts / params.groups;
  if (params.groups > 1 && params.group_rank == GroupRank::kTopTwo && group_size < 2) {
    return InvalidArgument("groups of 1 expert, at least 2 expected to rank groups by two");
  }
  const std::uint32_t candidates = group_size * params.groups_used;
  if (params.top_k == 0 || params.top_k > candidates) {
    return InvalidArgument("{} experts a token, 1 to {} expected", params.top_k, candidates);
  }
  return OkStatus();
}

bool ChooseTopExperts(const TopExpertsParams& params, std::span<float> scores,
                      std::span<const float> bias, std::span<ExpertChoice> chosen) {
  TROUPE_CHECK(scores.size() == params.experts && params.experts <= kMaxExperts);
  if (!AllSane(scores)) return false;
  if (params.score == GateScore::kSoftmax) {
    SoftmaxRow(scores.data(), scores.size());
  } else {
    SigmoidRow(scores.data(), scores.size());
  }
  return ChooseByScores(params, scores, bias, chosen);
}

bool ChooseByScores(const TopExpertsParams& params, std::span<const float> scores,
                    std::span<const float> bias, std::span<ExpertChoice> chosen) {
  TROUPE_CHECK(scores.size() == params.experts && params.experts <= kMaxExperts);
  TROUPE_CHECK(bias.empty() || bias.size() == params.experts);
  TROUPE_CHECK(chosen.size() == params.top_k);
  if (!AllSane(scores) || !AllSane(bias)) return false;

  Keys storage;
  const std::span<float> keys = std::span(storage).first(params.experts);
  std::copy(scores.begin(), scores.end(), keys.begin());
  for (std::size_t e = 0; e < bias.size(); ++e) keys[e] += bias[e];
  if (params.groups_used < params.groups) KeepBestGroups(params, keys);

  // A pass for each choice: cheap for a few of a few hundred keys, and ties go to the lowest index.
  for (ExpertChoice& choice : chosen) {
    choice.expert = Best(keys);
    choice.weight = scores[choice.expert];
    keys[choice.expert] = kNever;
  }
  FinishWeights(params, chosen);
  return true;
}

}  // namespace troupe
