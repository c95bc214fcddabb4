#include "expert/flow/draft_governor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace troupe {
namespace {

// How likely a guess is right before anything was measured, by the level of its evidence, and how
// many guesses that counts for.
constexpr std::array<double, DraftKind::kLevels> kOddsAtFirst = {0.3,  0.3, 0.4,  0.5,
                                                                 0.65, 0.8, 0.92, 0.95};
constexpr double kWeightAtFirst = 3;
// Of older guesses when a draft's outcome comes in: the last dozen drafts decide.
constexpr double kKept = 0.92;
// What a row more takes before a pass of several was measured, of a pass of one row; and how what
// rows take grows with their number beyond what was measured: about as the union of the experts of
// 2 to 32 tokens of recorded routes.
constexpr double kRowShareAtFirst = 0.35, kGrowth = 0.75;
// What a guess that was only compared, and right, adds to the account, of a token's time: up to a
// pass's worth.
constexpr double kComparedShare = 0.25;
// Of all time, for drafts that models make only to be compared.
constexpr double kTriedShare = 0.01;
// Of the gains, what may be lost again; and what is left of it all after each pass.
constexpr double kGainShare = 0.5, kCreditKept = 0.998;
// Passes' worth that the account may be below nothing, by one pass and by a whole comparison of
// passes with drafts and without: one bad measurement is not held against drafts for ever.
constexpr double kMostDebt = 3, kMostComparedDebt = 8;
// What a token more must add to the rate: where it adds less, a long draft only risks more.
constexpr double kGainATokenMore = 0.003;
// How much longer than expected a pass may take, or less long, for the account: a pass of a size
// that was measured before.
constexpr double kMostSurprise = 2;

}  // namespace

std::size_t DraftKind::Level() const {
  return std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(evidence)), kLevels - 1);
}

double DraftGovernor::Odds(DraftKind kind) const {
  const Quality& quality = quality_[kind.source][kind.Level()];
  const double at_first = kOddsAtFirst[kind.Level()];
  return (quality.right + kWeightAtFirst * at_first) / (quality.tried + kWeightAtFirst);
}

double DraftGovernor::Expected(DraftKind kind, std::size_t tokens) const {
  const double odds = Odds(kind);
  return odds * (1 - std::pow(odds, static_cast<double>(tokens))) / (1 - odds);
}

bool DraftGovernor::MayTry(double seconds) const {
  if (!began_ || turns_.resting() || seconds > credit_ / 2) return false;
  return tried_ + seconds <= kTriedShare * seconds_ + options_.first_loss * plain_token_;
}

void DraftGovernor::Learn(const DraftOutcome& outcome) {
  if (outcome.drafted == 0) return;
  const double enough = std::max(credit_, options_.first_loss * plain_token_);
  if (!outcome.checked) {
    credit_ = std::min(enough, credit_ + kComparedShare * outcome.right * plain_token_);
  }
  Quality& quality = quality_[outcome.kind.source][outcome.kind.Level()];
  quality.right = kKept * quality.right + outcome.right;
  quality.tried = kKept * quality.tried + std::min(outcome.right + 1, outcome.drafted);
}

double DraftGovernor::Seconds(double rows, const RowSpeed& speed) const {
  if (rows <= most_rows_) return speed.decode.At(rows);
  const double one = speed.decode.At(1), most = speed.decode.At(most_rows_);
  if (most_rows_ < 2) return one + (rows - 1) * kRowShareAtFirst * one;
  // Rows share experts, so each costs less than the one before.
  return one + (most - one) * std::pow((rows - 1) / (most_rows_ - 1), kGrowth);
}

DraftLength DraftGovernor::Weigh(DraftKind kind, std::size_t most, const RowSpeed& speed,
                                 const PassSoFar& pass, const DraftCost& cost) const {
  const double plain = Seconds(pass.rows, speed) + pass.drafting_seconds;
  if (!began_ || plain <= 0 || most == 0 || turns_.resting()) return {};
  // Twice as many rows as were measured is how far one may look ahead.
  const double furthest = std::max(2 * most_rows_, pass.rows) + 1 - pass.rows;
  most = std::min(most, static_cast<std::size_t>(furthest));
  DraftLength best{.rate = (1 + options_.least_gain) * pass.tokens / plain};
  for (std::size_t length = 1;; length = std::min(most, length + 1 + length / 4)) {
    const double tokens = Expected(kind, length);
    const double drafting = cost.a_token * static_cast<double>(length) +
                            cost.catch_up * std::min(1.0, (1 + tokens) / cost.text_left);
    const double seconds =
        Seconds(pass.rows + static_cast<double>(length), speed) + pass.drafting_seconds + drafting;
    if ((seconds - plain) * (1 - Odds(kind)) > credit_) break;
    const double rate = (pass.tokens + tokens) / seconds;
    const auto longer = static_cast<double>(length - best.tokens);
    if (rate > best.rate * (1 + kGainATokenMore * longer)) {
      best = {.tokens = static_cast<std::uint32_t>(length), .rate = rate, .seconds = drafting};
    }
    if (length == most) break;
  }
  return best;
}

void DraftGovernor::Add(DraftKind kind, const DraftLength& offer, PassSoFar& pass) const {
  pass.rows += offer.tokens;
  pass.tokens += Expected(kind, offer.tokens);
  pass.drafting_seconds += offer.seconds;
}

std::uint32_t DraftGovernor::Length(DraftKind kind, std::size_t most, const RowSpeed& speed,
                                    PassSoFar& pass) {
  const DraftLength offer = Weigh(kind, most, speed, pass);
  Add(kind, offer, pass);
  return offer.tokens;
}

void DraftGovernor::Book(double saved, double least) {
  const double after = credit_ + (saved > 0 ? kGainShare * saved : saved);
  credit_ = std::max(after, std::min(least, credit_));
}

void DraftGovernor::BookTurn(const Pass& pass, double seconds, double saved) {
  compared_.passes += turns_.resting();
  const double more = turns_.OnPass({.rows = pass.decode_rows,
                                     .guessed = pass.guessed,
                                     .right = pass.right,
                                     .seconds = seconds + pass.drafting_seconds,
                                     .saved = saved});
  compared_.more_saved_seconds += more;
  Book(more, -kMostComparedDebt * plain_token_ * pass.decode_rows);
}

double DraftGovernor::OnPass(const Pass& pass, const RowSpeed& speed) {
  credit_ += options_.loss_share * pass.seconds;
  seconds_ += pass.seconds;
  saved_ -= pass.drafting_seconds;
  if (pass.guessed == 0) {
    credit_ -= pass.drafting_seconds;
    if (pass.prompt_rows == 0 && pass.decode_rows > 0) {
      if (!began_) credit_ += options_.first_loss * pass.seconds;
      began_ = true;
      const double known = speed.decode.At(pass.decode_rows);
      plain_token_ = known / pass.decode_rows;
      most_rows_ = std::max<double>(most_rows_, pass.decode_rows);
      BookTurn(pass, known > 0 ? std::min(pass.seconds, kMostSurprise * known) : pass.seconds,
               /*saved=*/-pass.drafting_seconds);
    }
    return 0;
  }
  const double plain = speed.Predict(pass.decode_rows, pass.prompt_rows);
  if (plain <= 0) return 0;
  const double decodes = speed.decode.At(pass.decode_rows);
  const double a_token = pass.decode_rows == 0 ? 0 : decodes / pass.decode_rows;
  const auto saved_by = [&](double seconds) { return pass.right * a_token - (seconds - plain); };
  const double rows = pass.decode_rows + pass.guessed;
  double charged = pass.seconds;
  if (rows <= most_rows_) {  // what somebody else took of the machine is no draft's fault
    const double expected = plain - decodes + Seconds(rows, speed);
    charged = std::clamp(charged, expected / kMostSurprise, expected * kMostSurprise);
  } else if (pass.prompt_rows == 0) {
    if (checked_) most_rows_ = rows;
    checked_ = true;
  }
  const double change = saved_by(charged) - pass.drafting_seconds;
  credit_ *= kCreditKept;
  Book(change, -kMostDebt * plain);
  if (pass.prompt_rows == 0 && pass.decode_rows > 0) BookTurn(pass, charged, change);
  saved_ += saved_by(pass.seconds);
  return saved_by(pass.seconds);
}

}  // namespace troupe
