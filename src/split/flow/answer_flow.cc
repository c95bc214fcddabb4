#include "split/flow/answer_flow.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

// Of a cloud that is well. That it or its link failed has other codes.
bool IsRefusal(const Status& why) {
  return why.code() == Code::kResourceExhausted || why.code() == Code::kFailedPrecondition;
}

}  // namespace

FlowCounts& FlowCounts::operator+=(const FlowCounts& other) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] += other.tokens[i];
    unused[i] += other.unused[i];
    taken_over[i] += other.taken_over[i];
    moved[i] += other.moved[i];
  }
  failures += other.failures;
  refusals += other.refusals;
  silences += other.silences;
  stalls += other.stalls;
  wrong += other.wrong;
  return *this;
}

FlowStep AnswerFlow::Begin(Side first, const CloudView& view, Nanos now) {
  FlowStep step;
  cloud_usable_ = view.usable;
  holder_ = first;
  Start(first, Purpose::kAlone, FlowStep::Why::kFirst, now, step);
  return step;
}

std::optional<Side> AnswerFlow::PlaceOf(RunId run) const {
  for (const Side place : {Side::kEnd, Side::kCloud}) {
    if (At(place) && At(place)->id == run) return place;
  }
  return std::nullopt;
}

void AnswerFlow::Start(Side place, Purpose purpose, FlowStep::Why why, Nanos now, FlowStep& step) {
  TROUPE_CHECK(!At(place));
  At(place) = Run{.id = ++last_run_,
                  .purpose = purpose,
                  .position = tokens_.size(),
                  .given = 0,
                  .heard = now,
                  .worked_at = now};
  step.start.push_back({.run = last_run_, .place = place, .why = why});
}

void AnswerFlow::Stop(Side place, FlowStep& step) {
  if (!At(place)) return;
  step.stop.push_back(At(place)->id);
  At(place).reset();
}

void AnswerFlow::StopAll(FlowStep& step) {
  Stop(Side::kEnd, step);
  Stop(Side::kCloud, step);
}

FlowStep AnswerFlow::End() {
  FlowStep step;
  StopAll(step);
  return step;
}

void AnswerFlow::WaitLonger(Side place, Nanos now, bool failed) {
  Retry& retry = retries_[static_cast<std::size_t>(place)];
  retry.pause =
      retry.pause == 0 ? limits_.first_again : std::min(2 * retry.pause, limits_.most_again);
  retry.not_before = now + retry.pause;
  retry.failed = failed;
}

bool AnswerFlow::HasJustFailed(Side place, Nanos now) const {
  const Retry& retry = retries_[static_cast<std::size_t>(place)];
  return retry.failed && now < retry.not_before;
}

void AnswerFlow::Hold(Side place) {
  holder_ = place;
  ++counts_.taken_over[static_cast<std::size_t>(place)];
}

FlowStep AnswerFlow::OnHeard(RunId run, Nanos now) {
  if (const std::optional<Side> place = PlaceOf(run)) At(*place)->heard = now;
  return {};
}

FlowStep AnswerFlow::OnWork(RunId run, Nanos now) {
  if (const std::optional<Side> place = PlaceOf(run)) {
    At(*place)->heard = At(*place)->worked_at = now;
  }
  return {};
}

bool AnswerFlow::Contradicts(Side place, std::optional<TokenId> token, Nanos now, FlowStep& step) {
  const std::size_t at = At(place)->position;
  if (at >= tokens_.size() || tokens_[at] == token) return false;
  step.cloud_is_wrong = true;
  if (place == Side::kCloud) {
    ++counts_.failures;
    Stop(place, step);
    if (!At(Side::kEnd)) {
      Start(Side::kEnd, Purpose::kAlone, FlowStep::Why::kWrong, now, step);
    }
    if (holder_ == Side::kCloud) Hold(Side::kEnd);
    return true;
  }
  StopAll(step);
  ++counts_.wrong;
  step.failure = DataLoss("token {} of the answer is not what the cloud said it was", at + 1);
  return true;
}

void AnswerFlow::Take(Side place, TokenId token, Nanos now, FlowStep& step) {
  tokens_.push_back(token);
  step.tokens.push_back(token);
  ++counts_.tokens[static_cast<std::size_t>(place)];
  retries_[static_cast<std::size_t>(place)].pause = 0;
  const bool stood_in = std::exchange(At(place)->purpose, Purpose::kAlone) == Purpose::kStandIn;
  const Side other = Other(place);
  if (holder_ != place) {
    Hold(place);
    if (stood_in) WaitLonger(other, now);
    Stop(other, step);
  } else if (At(other) && At(other)->purpose == Purpose::kStandIn) {
    Stop(other, step);  // who was silent speaks again
  }
}

// It began behind the others' tokens of then, and has had the time to catch up.
void AnswerFlow::JudgeReplacement(Side place, Nanos now, FlowStep& step) {
  const std::optional<Run>& run = At(place);
  if (!run || run->purpose != Purpose::kReplace || !At(Other(place))) return;
  if (run->given < limits_.patience || run->position >= tokens_.size()) return;
  Stop(place, step);
  WaitLonger(place, now);
}

FlowStep AnswerFlow::OnTokens(RunId run, std::span<const TokenId> tokens, Nanos now) {
  FlowStep step;
  const std::optional<Side> place = PlaceOf(run);
  if (!place) return step;
  At(*place)->heard = At(*place)->worked_at = now;
  At(*place)->expected.reset();
  for (const TokenId token : tokens) {
    if (Contradicts(*place, token, now, step)) return step;
    ++At(*place)->given;
    if (At(*place)->position++ < tokens_.size()) {
      ++counts_.unused[static_cast<std::size_t>(*place)];
    } else {
      Take(*place, token, now, step);
    }
  }
  JudgeReplacement(*place, now, step);
  return step;
}

FlowStep AnswerFlow::OnEnd(RunId run, FinishReason reason, Nanos now) {
  const std::optional<Side> place = PlaceOf(run);
  if (!place) return {};
  // Its context may be smaller than this machine's, and nobody but this machine's user cancels.
  if (*place == Side::kCloud &&
      (reason == FinishReason::kContextFull || reason == FinishReason::kCancelled)) {
    const Code code =
        reason == FinishReason::kContextFull ? Code::kResourceExhausted : Code::kUnavailable;
    return OnFailure(run, Error(code, "the cloud has ended the answer too early"), now);
  }
  FlowStep step;
  if (Contradicts(*place, std::nullopt, now, step)) return step;
  StopAll(step);
  std::erase(step.stop, run);
  step.finish = reason;
  return step;
}

FlowStep AnswerFlow::OnFailure(RunId run, const Status& why, Nanos now) {
  FlowStep step;
  const std::optional<Side> place = PlaceOf(run);
  if (!place) return step;
  At(*place).reset();
  WaitLonger(*place, now, /*failed=*/true);
  if (*place == Side::kCloud) {
    ++(IsRefusal(why) ? counts_.refusals : counts_.failures);
    cloud_failed_at_ = tokens_.size();
  }
  const Side other = Other(*place);
  if (At(other)) {
    At(other)->purpose = Purpose::kAlone;
    if (holder_ == *place) Hold(other);
    return step;
  }
  if (*place == Side::kCloud) {
    Start(Side::kEnd, Purpose::kAlone, FlowStep::Why::kFailure, now, step);
    Hold(Side::kEnd);
    return step;
  }
  const bool is_final =
      why.code() == Code::kInvalidArgument || why.code() == Code::kDeadlineExceeded;
  if (is_final || !cloud_usable_ || cloud_failed_at_ == tokens_.size()) {
    step.failure = why;
  } else {
    Start(Side::kCloud, Purpose::kAlone, FlowStep::Why::kFailure, now, step);
    Hold(Side::kCloud);
  }
  return step;
}

Nanos AnswerFlow::StallAfter(const Run& run) const {
  if (!run.expected) return limits_.unmeasured_stall;
  const double expected = limits_.stall_factor * static_cast<double>(*run.expected);
  return std::max(limits_.least_stall, static_cast<Nanos>(expected));
}

FlowStep AnswerFlow::OnTime(const CloudView& view, Nanos now) {
  FlowStep step;
  cloud_usable_ = view.usable;
  std::optional<Run>& cloud = At(Side::kCloud);
  const std::optional<Run>& end = At(Side::kEnd);
  if (cloud && view.next_token_in) {
    cloud->expected = std::max(cloud->expected.value_or(0), *view.next_token_in);
  }
  const bool is_silent = cloud && now - cloud->heard >= limits_.silence;
  const bool is_stalled = cloud && now - cloud->worked_at >= StallAfter(*cloud);
  if ((is_silent || is_stalled) && !end && !HasJustFailed(Side::kEnd, now)) {
    ++(is_silent ? counts_.silences : counts_.stalls);
    const FlowStep::Why why = is_silent ? FlowStep::Why::kSilence : FlowStep::Why::kStall;
    Start(Side::kEnd, Purpose::kStandIn, why, now, step);
    step.start.back().for_time = now - (is_silent ? cloud->heard : cloud->worked_at);
    return step;
  }
  if (!view.better || (cloud && end) || holder_ == *view.better) return step;
  if (*view.better == Side::kCloud && !(view.usable && view.has_room)) return step;
  if (now < retries_[static_cast<std::size_t>(*view.better)].not_before) return step;
  if (At(*view.better)) return step;
  if (!view.waits || moves_ == limits_.moves) {
    Start(*view.better, Purpose::kReplace, FlowStep::Why::kGain, now, step);
  } else {
    ++moves_;
    ++counts_.moved[static_cast<std::size_t>(*view.better)];
    StopAll(step);
    Start(*view.better, Purpose::kAlone, FlowStep::Why::kMove, now, step);
    holder_ = *view.better;
  }
  return step;
}

}  // namespace troupe
