#include "split/flow/draft_flow.h"

#include <algorithm>

namespace troupe {

void DraftFlow::StopRun(Step& step) {
  step.stop = step.stop || run_.has_value();
  run_.reset();
}

// A run that has ended is followed by another one when half of the lead is left.
void DraftFlow::GoOn(Nanos now, Step& step) {
  if (run_ || thinks_it_ends_ || guesses_.size() > ahead_ / 2 || ahead_ == 0) return;
  const std::size_t begins = told_.size() + guesses_.size();
  if (now < not_before_ || begins >= most_tokens_) return;
  run_ = Run{.id = ++last_run_, .position = begins};
  Start start{.run = last_run_,
              .begun = told_,
              .tokens = std::min(ahead_ - guesses_.size(), most_tokens_ - begins)};
  start.begun.insert(start.begun.end(), guesses_.begin(), guesses_.end());
  step.start = std::move(start);
}

void DraftFlow::MaybeOffer(Nanos now, Step& step) {
  if (!has_news_ || guesses_.empty() || offers_ >= limits_.most_offers) return;
  if (offers_ > 0 && now - offered_at_ < offer_pause_) return;
  has_news_ = false;
  ++offers_;
  offered_at_ = now;
  const std::size_t tokens = std::min(guesses_.size(), limits_.most_tokens);
  step.offer =
      Offer{.from = told_.size(),
            .tokens = {guesses_.begin(), guesses_.begin() + static_cast<std::ptrdiff_t>(tokens)}};
}

DraftFlow::Step DraftFlow::SetAhead(std::size_t tokens, Nanos now) {
  Step step;
  ahead_ = std::min(tokens, limits_.most_tokens);
  if (ahead_ == 0) {
    StopRun(step);
    guesses_.clear();
    has_news_ = false;
  }
  GoOn(now, step);
  return step;
}

DraftFlow::Step DraftFlow::OnTold(TokenId token, Nanos now) {
  Step step;
  told_.push_back(token);
  if (!guesses_.empty()) {
    const bool is_right = guesses_.front() == token;
    step.verdicts.push_back(is_right);
    if (is_right) {
      guesses_.pop_front();
    } else {
      guesses_.clear();
      has_news_ = false;
      StopRun(step);
    }
  }
  if (guesses_.empty()) thinks_it_ends_ = false;
  if (run_ && IsTooLate(*run_)) StopRun(step);
  GoOn(now, step);
  return step;
}

DraftFlow::Step DraftFlow::OnGuess(std::uint64_t run, TokenId token, Nanos now) {
  Step step;
  if (!run_ || run_->id != run) return step;
  const std::size_t at = run_->position++;
  run_->has_guessed = true;
  if (at < told_.size()) {  // the cloud was sooner
    step.verdicts.push_back(told_[at] == token);
    if (told_[at] != token || IsTooLate(*run_)) StopRun(step);
    GoOn(now, step);
    return step;
  }
  guesses_.push_back(token);
  has_news_ = true;
  MaybeOffer(now, step);
  return step;
}

DraftFlow::Step DraftFlow::OnRunEnd(std::uint64_t run, FinishReason reason, Nanos now) {
  Step step;
  if (!run_ || run_->id != run) return step;
  thinks_it_ends_ = reason != FinishReason::kLength && run_->position >= told_.size();
  run_.reset();
  GoOn(now, step);
  return step;
}

DraftFlow::Step DraftFlow::OnRunFailure(std::uint64_t run, Nanos now) {
  if (!run_ || run_->id != run) return {};
  run_.reset();
  not_before_ = now + limits_.pause;
  return {};
}

DraftFlow::Step DraftFlow::OnOfferOver(Nanos now) {
  Step step;
  --offers_;
  MaybeOffer(now, step);
  return step;
}

DraftFlow::Step DraftFlow::OnTime(Nanos now) {
  Step step;
  GoOn(now, step);
  MaybeOffer(now, step);
  return step;
}

}  // namespace troupe
