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
// Of an answer, to learn from; the seconds as without drafts: tokens of a shorter one may all have
// come together.
constexpr std::size_t kEnoughTokens = 16;
constexpr double kEnoughOfCloud = 0.25;
// By how much one answer's measurement may correct what is planned.
constexpr double kMostOff = 4;
// Guesses that are believed to be taken before any were, beside those that were; what is kept of
// older ones when an answer ends, and the time in which half of all is forgotten: one answer is
// believed at once, and some minutes later drafts are worth a try.
constexpr double kTakenAtFirst = 8, kTakenKept = 0.5;
constexpr double kTakenHalves = 100;  // seconds

}  // namespace

DraftPlan PlanDraft(const DraftFacts& facts) {
  const double cloud = facts.cloud_seconds, guess = facts.guess_seconds;
  const double odds = std::clamp(facts.odds, 0.0, kMostOdds);
  if (cloud <= 0 || guess <= 0 || guess >= cloud || odds <= 0) {
    return {.token_seconds = cloud, .cloud_seconds = cloud};
  }
  const double behind = facts.round_trip_seconds + facts.begin_seconds;
  const double overtakes_after = behind / (cloud - guess);  // tokens
  // Of an answer's tokens, those that come after a draft has overtaken and before it goes wrong.
  const double in_time = std::pow(odds, overtakes_after + 1);
  const double by_draft = in_time * std::clamp(facts.taken, 0.0, 1.0);
  const double drafted = std::max(guess, kRowShare * cloud);
  // What the cloud may take of a draft before it has told that it did; and as much again, as a run
  // of guesses is followed by another one when half of the lead is left (draft_flow.h).
  const double wanted = 2 * (1 + std::ceil((facts.round_trip_seconds + cloud) / guess));
  const double likely = std::floor(std::log(kLeastLikely) / std::log(odds));
  const double most = std::min<double>(kMostAhead, likely);
  const auto ahead = static_cast<std::size_t>(std::clamp(wanted, 1.0, std::max(most, 1.0)));
  return {.ahead = ahead,
          .token_seconds = by_draft * drafted + (1 - by_draft) * cloud,
          .in_time = in_time,
          .drafted_seconds = drafted,
          .cloud_seconds = cloud};
}

void DraftMeter::Mean::Add(double value) {
  value_ = value_ ? *value_ + kNewestSample * (value - *value_) : value;
}

void DraftMeter::OnVerdict(bool is_right) {
  right_ = kKept * right_ + (is_right ? 1 : 0);
  tried_ = kKept * tried_ + 1;
}

bool DraftMeter::OnAnswer(const DraftedAnswer& answer, Nanos now) {
  if (answer.tokens < kEnoughTokens || answer.judged <= 0) return false;
  const double kept = kTakenKept * Kept(now);
  taken_ = kept * taken_ + std::min(answer.right, answer.in_time);
  in_time_ = kept * in_time_ + answer.in_time;
  taken_at_ = now;
  if (answer.cloud_seconds < kEnoughOfCloud) return true;
  // As many guesses being taken as were.
  const double share = std::min(answer.right / answer.judged, 1.0);
  const double expected = share * answer.drafted_seconds + (1 - share) * answer.cloud_seconds;
  const double most = kMostOff * expected;
  factor_.OnAnswer(expected, 1, std::clamp(answer.seconds, expected / kMostOff, most), now);
  return true;
}

double DraftMeter::Kept(Nanos now) const {
  return std::exp2(-static_cast<double>(now - taken_at_) * 1e-9 / kTakenHalves);
}

double DraftMeter::Taken(Nanos now) const {
  const double kept = Kept(now);
  return (kept * taken_ + kTakenAtFirst) / (kept * in_time_ + kTakenAtFirst);
}

double DraftMeter::Odds() const {
  return (right_ + kWeightAtFirst * kOddsAtFirst) / (tried_ + kWeightAtFirst);
}

DraftPlan DraftMeter::Plan(double own_token_seconds, double cloud_seconds,
                           double round_trip_seconds, Nanos now) const {
  const double guess = guess_.Or(own_token_seconds);
  const double taken = Taken(now);
  DraftPlan plan = PlanDraft({.guess_seconds = guess,
                              .begin_seconds = begin_.Or(2 * guess),
                              .cloud_seconds = cloud_seconds,
                              .round_trip_seconds = round_trip_seconds,
                              .odds = Odds(),
                              .taken = taken});
  if (plan.ahead == 0) return plan;
  // Sooner than all of them guessed at once no token can come, whatever a few answers took.
  const double by_draft = plan.in_time * taken;
  const double soonest = by_draft * guess + (1 - by_draft) * cloud_seconds;
  plan.token_seconds = std::max(Factor(now) * plan.token_seconds, soonest);
  return plan;
}

}  // namespace troupe
