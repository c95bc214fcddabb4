#include "split/flow/draft_pace.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double kNewestSample = 0.1;
// What is taken for a guess's odds before any was told right or wrong, and how many that counts
// for.
constexpr double kOddsAtFirst = 0.8, kWeightAtFirst = 4;
constexpr double kKept = 0.98;  // of older verdicts, by each new one
// A guess that is less likely to be reached by right ones is not made.
constexpr double kLeastLikely = 0.1;
constexpr double kMostOdds = 0.995;
constexpr std::size_t kMostAhead = 64;
// A row more in a pass of the cloud takes such a part of the pass, until an answer with drafts was
// measured (expert/flow/draft_governor.cc takes the same).
constexpr double kRowShare = 0.35;
// By how much one answer's measurement may correct what is planned.
constexpr double kMostOff = 4;

}  // namespace

DraftPlan PlanDraft(const DraftFacts& facts) {
  const double cloud = facts.cloud_seconds, guess = facts.guess_seconds;
  const double odds = std::clamp(facts.odds, 0.0, kMostOdds);
  if (cloud <= 0 || guess <= 0 || guess >= cloud || odds <= 0) return {0, cloud};
  const double behind = facts.round_trip_seconds + facts.begin_seconds;
  const double overtakes_after = behind / (cloud - guess);  // tokens
  // Of an answer's tokens, those that come after a draft has overtaken and before it goes wrong.
  const double in_time = std::pow(odds, overtakes_after + 1);
  const double drafted = std::max(guess, kRowShare * cloud);
  // What the cloud may take of a draft before it has told that it did; and as much again, as a run
  // of guesses is followed by another one when half of the lead is left (draft_flow.h).
  const double wanted = 2 * (1 + std::ceil((facts.round_trip_seconds + cloud) / guess));
  const double likely = std::floor(std::log(kLeastLikely) / std::log(odds));
  const double most = std::min<double>(kMostAhead, likely);
  const auto ahead = static_cast<std::size_t>(std::clamp(wanted, 1.0, std::max(most, 1.0)));
  return {.ahead = ahead, .token_seconds = in_time * drafted + (1 - in_time) * cloud};
}

void DraftMeter::Mean::Add(double value) {
  value_ = value_ ? *value_ + kNewestSample * (value - *value_) : value;
}

void DraftMeter::OnVerdict(bool is_right) {
  right_ = kKept * right_ + (is_right ? 1 : 0);
  tried_ = kKept * tried_ + 1;
}

void DraftMeter::OnAnswer(double token_seconds, double own_token_seconds, double cloud_seconds,
                          double round_trip_seconds) {
  const DraftPlan plan = PlanDraft(Facts(own_token_seconds, cloud_seconds, round_trip_seconds));
  if (plan.ahead == 0 || plan.token_seconds <= 0) return;
  off_by_.Add(std::clamp(token_seconds / plan.token_seconds, 1 / kMostOff, kMostOff));
}

double DraftMeter::Odds() const {
  return (right_ + kWeightAtFirst * kOddsAtFirst) / (tried_ + kWeightAtFirst);
}

DraftFacts DraftMeter::Facts(double own_token_seconds, double cloud_seconds,
                             double round_trip_seconds) const {
  const double guess = guess_.Or(own_token_seconds);
  return {.guess_seconds = guess,
          .begin_seconds = begin_.Or(2 * guess),
          .cloud_seconds = cloud_seconds,
          .round_trip_seconds = round_trip_seconds,
          .odds = Odds()};
}

DraftPlan DraftMeter::Plan(double own_token_seconds, double cloud_seconds,
                           double round_trip_seconds) const {
  DraftPlan plan = PlanDraft(Facts(own_token_seconds, cloud_seconds, round_trip_seconds));
  if (plan.ahead > 0) plan.token_seconds *= off_by_.Or(1);
  return plan;
}

}  // namespace troupe
