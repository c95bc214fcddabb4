#include "split/split_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace troupe {
namespace {

// Tokens that are still expected of an answer that is longer than answers use to be.
constexpr std::size_t kLeastExpected = 16;
// What is measured varies: an answer keeps its drafts for so long after they seemed worth it last.
constexpr Nanos kKeepDrafts = 1'000'000'000;
// So often each answer asks anew what places have kept of it, which takes as long as it is.
constexpr Nanos kLookForKept = 1'000'000'000;

// `why`: as it was told, for what was decided elsewhere.
std::string ReasonOf(const FlowStep::Start& start, const std::string& why) {
  const double seconds = static_cast<double>(start.for_time) * 1e-9;
  switch (start.why) {
    case FlowStep::Why::kSilence:
      return fmt::format("the cloud was silent for {:.1f} s", seconds);
    case FlowStep::Why::kStall:
      return fmt::format("the cloud gave no token for {:.1f} s", seconds);
    case FlowStep::Why::kWrong:
      return "the cloud has said a token that this model does not say";
    default:
      return why;
  }
}

}  // namespace

SplitAnswer::SplitAnswer(AnswerWorld& world, Parts parts)
    : world_(world),
      request_(std::move(parts.request)),
      crosses_exactly_(parts.crosses_exactly),
      deadline_(parts.deadline),
      text_(std::move(parts.text)),
      ticket_(std::move(parts.ticket)),
      gate_(std::move(parts.gate)),
      flow_(world.limits()) {}

SplitAnswer::~SplitAnswer() {
  for (const auto& [id, stop] : runs_) stop();
}

AnswerTask SplitAnswer::Task() const {
  const std::size_t said = flow_.tokens().size();
  const std::size_t most = request_.max_tokens - std::min(request_.max_tokens, said);
  const std::size_t usual = world_.UsualTokens();
  const std::size_t expected = std::max(usual - std::min(usual, said), kLeastExpected);
  return {.read = text_.prompt().size() + said,
          .tokens = std::min(most, expected),
          .one_token = request_.max_tokens == request_.begun.size() + 1 && !request_.rule,
          .exact = crosses_exactly_,
          .kept = kept_};
}

bool SplitAnswer::FitsCloud() const {
  const std::size_t context = world_.CloudContext();
  if (context == 0) return true;
  const std::size_t length = text_.prompt().size() + flow_.tokens().size();
  if (length >= context) return false;
  const bool ends_early = !request_.ignore_end || !request_.stop.empty() ||
                          !request_.stop_tokens.empty() || request_.rule;
  const std::size_t chosen = request_.begun.size() + flow_.tokens().size();
  // The last token needs no room behind it.
  return ends_early || length + request_.max_tokens <= context + 1 + chosen;
}

void SplitAnswer::LookForKept() {
  if (kept_at_ && world_.Now() - *kept_at_ < kLookForKept) return;
  kept_at_ = world_.Now();
  for (const Side side : {Side::kEnd, Side::kCloud}) {
    const KnownPrefixes* const known = world_.KnownIn(side);
    kept_[static_cast<std::size_t>(side)] =
        known == nullptr ? 0 : known->Kept(request_.cache_salt, text_.prompt());
  }
}

void SplitAnswer::RememberWhereItWasRead() {
  for (const Side side : {Side::kEnd, Side::kCloud}) {
    KnownPrefixes* const known = world_.KnownIn(side);
    const std::size_t reached = reached_[static_cast<std::size_t>(side)];
    if (known == nullptr || reached == 0 || (side == Side::kCloud && was_cut_)) continue;
    std::vector<TokenId> text(text_.prompt().begin(), text_.prompt().end());
    // The last one was chosen there, and not read.
    text.insert(text.end(), flow_.tokens().begin(),
                flow_.tokens().begin() + static_cast<std::ptrdiff_t>(reached - 1));
    known->Remember(request_.cache_salt, text);
  }
}

PlaceChoice SplitAnswer::Begin() {
  LookForKept();
  const AnswerTask task = Task();
  PlaceChoice choice = world_.Choose(task);
  if (!world_.CloudIsUsable()) {
    choice = {.place = Side::kEnd, .why = "there is no cloud now"};
  } else if (!FitsCloud()) {
    choice = {.place = Side::kEnd, .why = "it does not fit into the cloud's context"};
  }
  cut_ = choice.cut;
  begun_ = world_.Now();
  predicted_ = {.place = choice.place,
                .cut = choice.cut.has_value(),
                .drafts = choice.drafts,
                .factor = choice.factor,
                .expected_seconds = choice.seconds};
  expected_tokens_ = task.tokens;
  token_seconds_ = choice.token_seconds;
  place_ = choice.place;
  pace_.Expect(choice.token_seconds);
  Do(flow_.Begin(choice.place, {.usable = CloudIsUsable(), .better = choice.place}, world_.Now()));
  DraftIf(choice.drafts);
  return choice;
}

void SplitAnswer::OnTime() {
  if (over_) return;
  if (ticket_->cancelled()) {
    text_.Cancel();
    return Finish();
  }
  LookForKept();
  const Nanos now = world_.Now();
  if (deadline_ && *deadline_ < now) {
    return Fail(Status(Code::kDeadlineExceeded, "the request's deadline has passed"));
  }
  CloudView view{
      .usable = CloudIsUsable(), .has_room = world_.CloudHasRoom(), .better = std::nullopt};
  PlaceChoice choice;
  if (view.usable) {
    const auto& left = left_[static_cast<std::size_t>(flow_.holder())];
    AnswerWorld::Look look =
        world_.LookAgain(Task(), {.place = flow_.holder(),
                                  .left = left ? *left : RunLeft{.begun = true},
                                  .token_seconds = pace_.Seconds(),
                                  .drafts = draft_ != nullptr});
    choice = std::move(look.choice);
    if (choice.place == flow_.holder()) pace_.Expect(choice.token_seconds);
    view.better = choice.place;
    view.waits = look.waits;
    view.next_token_in = look.next_token_in;
    if (view.next_token_in && reads_cut_) {
      view.next_token_in = std::max(*view.next_token_in, cut_takes_);
    }
  }
  Do(flow_.OnTime(view, now), choice.why);
  DraftIf(choice.drafts);
}

void SplitAnswer::DropDrafts() {
  if (draft_ == nullptr) return;
  draft_told_ = draft_->told();
  draft_.reset();
  if (pace_.has_begun()) pace_.Restart();
}

void SplitAnswer::DraftIf(bool wanted) {
  if (wanted) drafts_until_ = world_.Now() + kKeepDrafts;
  const Nanos now = world_.Now();
  const auto& left = left_[static_cast<std::size_t>(Side::kCloud)];
  // The end may have to read it all itself, if it is not read in the cloud soon.
  const bool waits = left && !left->begun && left->begins_at > now;
  const bool may = draft_name_ && CloudWorksAlone() && !over_ && !reads_cut_ && !waits;
  if (!may || now >= drafts_until_) return DropDrafts();
  if (draft_ == nullptr) {
    draft_ = world_.Draft(Rest(), *draft_name_, draft_told_);
    if (draft_ != nullptr && pace_.has_begun()) pace_.Restart();
  }
  if (draft_ != nullptr) draft_->OnTime();
}

void SplitAnswer::Fail(const Status& why) {
  if (over_) return;
  text_.Fail(why);
  Finish();
}

Request SplitAnswer::Rest() const {
  Request rest = request_;
  rest.begun.insert(rest.begun.end(), flow_.tokens().begin(), flow_.tokens().end());
  if (deadline_) {
    rest.timeout = std::chrono::nanoseconds(std::max<Nanos>(*deadline_ - world_.Now(), 1));
  }
  return rest;
}

void SplitAnswer::Do(FlowStep step, const std::string& why) {
  const auto self = shared_from_this();
  if (std::exchange(place_, flow_.holder()) != flow_.holder()) pace_.Restart();
  if (!step.tokens.empty()) {
    pace_.OnTokens(step.tokens.size(), world_.Now());
    reached_[static_cast<std::size_t>(flow_.holder())] = flow_.tokens().size();
  }
  if (step.cloud_is_wrong) world_.OnWrongCloud();
  for (const TokenId token : step.tokens) {
    if (over_) return;
    Take(token);
  }
  for (const RunId run : step.stop) {
    const auto stopped = runs_.extract(run);
    if (!stopped.empty()) stopped.mapped()();
  }
  if (over_) return;
  if (!step.failure.ok()) return Fail(step.failure);
  if (step.finish) {
    if (text_.state() == TextGeneration::State::kReading) text_.Read(text_.prompt_left());
    text_.Finish(*step.finish);
    return Finish();
  }
  for (const FlowStep::Start& start : step.start) {
    if (start.why == FlowStep::Why::kStall) world_.OnStall();
    Explain(start, why);
    StartRun(start);
  }
  if (!CloudWorksAlone()) DropDrafts();
}

void SplitAnswer::Take(TokenId token) {
  reads_cut_ = false;
  if (ticket_->cancelled()) text_.Cancel();
  if (text_.state() == TextGeneration::State::kReading) text_.Read(text_.prompt_left());
  if (!text_.ended()) {
    if (gate_ != nullptr) gate_->CountBegun(text_.answer().tokens.size() + 1);
    (void)text_.Take(token);  // a failure is the state of the text
  }
  if (text_.ended()) return Finish();
  if (draft_ != nullptr) draft_->OnTold(token);
}

void SplitAnswer::Explain(const FlowStep::Start& start, const std::string& why) {
  if (start.why == FlowStep::Why::kFirst) return;
  world_.Explain(fmt::format("an answer {} the {}{} behind {} tokens: {}",
                             start.why == FlowStep::Why::kMove ? "moves to" : "goes on at",
                             Name(start.place), start.why == FlowStep::Why::kGain ? " as well" : "",
                             flow_.tokens().size(), ReasonOf(start, why)));
}

void SplitAnswer::StartRun(const FlowStep::Start& start) {
  const std::weak_ptr<SplitAnswer> weak = weak_from_this();
  const RunId run = start.run;
  const auto tell = [weak, run](auto event) {
    return [weak, run, event](const auto&... what) {
      const auto self = weak.lock();
      if (!self || self->over_) return;
      event(*self, run, what...);
    };
  };
  RunEvents events;
  events.on_heard =
      tell([](SplitAnswer& self, RunId id) { self.Do(self.flow_.OnHeard(id, self.world_.Now())); });
  events.on_work =
      tell([](SplitAnswer& self, RunId id) { self.Do(self.flow_.OnWork(id, self.world_.Now())); });
  events.on_read = tell([](SplitAnswer& self, RunId, std::size_t read, std::size_t all) {
    if (self.gate_ != nullptr && self.flow_.tokens().empty()) (void)self.gate_->Read(read, all);
  });
  events.on_tokens = tell([](SplitAnswer& self, RunId id, std::span<const TokenId> tokens) {
    self.Do(self.flow_.OnTokens(id, tokens, self.world_.Now()));
  });
  events.on_end = tell([](SplitAnswer& self, RunId id, FinishReason reason, const Usage& usage) {
    self.OnRunEnd(id, reason, usage);
  });
  events.on_failure = tell([](SplitAnswer& self, RunId id, const Status& why) {
    self.runs_.erase(id);
    self.Do(self.flow_.OnFailure(id, why, self.world_.Now()), why.message());
  });
  RunAsk ask{.request = Rest()};
  std::shared_ptr<RunLeft>& left = left_[static_cast<std::size_t>(start.place)];
  left.reset();
  if (start.place == Side::kCloud) {
    DropDrafts();  // they were another run's
    draft_told_ = {};
    const std::optional<CutPlan> cut = std::exchange(cut_, std::nullopt);
    was_cut_ = reads_cut_ = cut.has_value();
    if (cut) cut_takes_ = static_cast<Nanos>(cut->seconds * 1e9);
    draft_name_ = cut && cut->prefix == 0 ? std::nullopt : world_.NameForDrafts();
    ask.drafts = draft_name_;
    if (cut) {
      runs_[run] = world_.StartCut(ask, crosses_exactly_, *cut, std::move(events));
      return;
    }
  }
  ask.left = left = std::make_shared<RunLeft>();
  ask.kept = kept_[static_cast<std::size_t>(start.place)];
  runs_[run] = world_.SourceIn(start.place).Start(ask, std::move(events));
}

void SplitAnswer::OnRunEnd(RunId run, FinishReason reason, const Usage& usage) {
  runs_.erase(run);
  text_.usage().expert_uses += usage.expert_uses;
  text_.usage().experts += usage.experts;
  text_.usage().decode_experts += usage.decode_experts;
  text_.usage().speculation += usage.speculation;
  Do(flow_.OnEnd(run, reason, world_.Now()), "it has ended in the other place too early");
}

Predicted SplitAnswer::WhatWasPredicted() const {
  const bool has_ended = text_.state() != TextGeneration::State::kFailed && !ticket_->cancelled();
  const auto elsewhere = static_cast<std::size_t>(Other(predicted_.place));
  const FlowCounts& counts = flow_.counts();
  const bool was_alone = counts.tokens[elsewhere] + counts.taken_over[0] + counts.taken_over[1] +
                             counts.moved[0] + counts.moved[1] ==
                         0;
  if (!has_ended || !was_alone || predicted_.expected_seconds <= 0) return {};
  Predicted what = predicted_;
  // How long it would be nobody knew.
  what.expected_seconds += token_seconds_ * (static_cast<double>(flow_.tokens().size()) -
                                             static_cast<double>(expected_tokens_));
  what.seconds = static_cast<double>(world_.Now() - begun_) * 1e-9;
  return what;
}

void SplitAnswer::Finish() {
  if (std::exchange(over_, true)) return;
  (void)flow_.End();
  draft_.reset();
  for (const auto& [id, stop] : std::exchange(runs_, {})) stop();
  RememberWhereItWasRead();
  world_.OnOver(flow_, WhatWasPredicted());
  if (text_.state() == TextGeneration::State::kFailed) {
    ticket_->Finish(text_.status());
  } else {
    ticket_->Finish(std::move(text_).TakeAnswer());
  }
}

}  // namespace troupe
