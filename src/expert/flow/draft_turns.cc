#include "expert/flow/draft_turns.h"

#include <algorithm>

namespace troupe {
namespace {

// Of earlier rests, beside a new one.
constexpr double kKeptOfRests = 0.5;
// Times as many passes as checks: drafts ride so seldom then that it does not matter what they do.
constexpr double kSeldom = 8;

}  // namespace

void DraftTurns::Stretch::Add(const Pass& pass) {
  ++passes;
  checks += pass.guessed > 0;
  tokens += pass.rows + pass.right;
  seconds += pass.seconds;
  saved += pass.saved;
}

bool DraftTurns::IsBeyondDoubt() const {
  return stretch_ < options_.longest_stretch && plain_tokens_ > 0 &&
         drafting_.tokens * plain_seconds_ >= options_.no_doubt * drafting_.seconds * plain_tokens_;
}

double DraftTurns::OnPass(const Pass& pass) {
  if (pass.rows != rows_) {
    *this = DraftTurns(options_);
    rows_ = pass.rows;
  }
  if (!resting_) {
    drafting_.Add(pass);
    if (drafting_.checks < stretch_) {
      if (drafting_.passes >= kSeldom * stretch_) drafting_ = {};
      return 0;
    }
    if (IsBeyondDoubt()) {
      drafting_ = {};
      stretch_ = std::min(2 * stretch_, options_.longest_stretch);
    } else {
      resting_ = true;
    }
    return 0;
  }
  if (settled_ < options_.settle) {
    ++settled_;
    return 0;
  }
  rest_.Add(pass);
  if (rest_.passes < options_.rest) return 0;
  plain_tokens_ = kKeptOfRests * plain_tokens_ + rest_.tokens;
  plain_seconds_ = kKeptOfRests * plain_seconds_ + rest_.seconds;
  const double saved = drafting_.tokens * plain_seconds_ / plain_tokens_ - drafting_.seconds;
  const double more = saved - drafting_.saved;
  stretch_ = saved > 0 ? std::min(2 * stretch_, options_.longest_stretch) : options_.first_stretch;
  drafting_ = rest_ = {};
  settled_ = 0;
  resting_ = false;
  return more;
}

}  // namespace troupe
