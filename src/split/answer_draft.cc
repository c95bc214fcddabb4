#include "split/answer_draft.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

double SecondsOf(Nanos time) { return static_cast<double>(time) * 1e-9; }

// A guess need not be what the model would say: only the cloud's word counts.
Request GuessesFor(Request rest) {
  rest.exact = false;
  rest.most_loss.reset();
  rest.timeout.reset();
  return rest;
}

}  // namespace

AnswerDraft::AnswerDraft(DraftWorld& world, Request rest, std::uint64_t name,
                         const DraftVerdict& told)
    : world_(world),
      request_(GuessesFor(std::move(rest))),
      name_(name),
      flow_(request_.begun, request_.max_tokens),
      right_before_(told.right),
      told_(told) {}

AnswerDraft::~AnswerDraft() {
  if (stop_) stop_();
  world_.OnDrafted(tally_.Sum());
}

void AnswerDraft::OnTime() {
  constexpr int kOffersEach = 4;  // round trip
  flow_.SetOfferPause(static_cast<Nanos>(world_.RoundTripSeconds() * 1e9 / kOffersEach));
  plan_ = world_.Pace();
  Do(flow_.SetAhead(plan_.ahead, world_.Now()));
  Do(flow_.OnTime(world_.Now()));
}

void AnswerDraft::OnTold(TokenId token) {
  tally_.OnTold(plan_, world_.Now());
  Do(flow_.OnTold(token, world_.Now()));
}

void AnswerDraft::Do(const DraftFlow::Step& step) {
  for (const bool is_right : step.verdicts) world_.meter().OnVerdict(is_right);
  if (step.stop && stop_) std::exchange(stop_, nullptr)();
  if (step.start) StartRun(*step.start);
  if (step.offer) SendOffer(*step.offer);
}

void AnswerDraft::StartRun(const DraftFlow::Start& start) {
  request_.begun = start.begun;
  Request request = request_;
  request.max_tokens = std::min(request.max_tokens, start.begun.size() + start.tokens);
  const std::weak_ptr<AnswerDraft> weak = weak_from_this();
  RunEvents events;
  events.on_read = [](std::size_t, std::size_t) {};
  events.on_tokens = [weak, run = start.run](std::span<const TokenId> tokens) {
    if (const auto self = weak.lock()) self->OnGuesses(run, tokens);
  };
  events.on_end = [weak, run = start.run](FinishReason reason, const Usage&) {
    const auto self = weak.lock();
    if (self) self->Do(self->flow_.OnRunEnd(run, reason, self->world_.Now()));
  };
  events.on_failure = [weak, run = start.run](const Status&) {
    const auto self = weak.lock();
    if (self) self->Do(self->flow_.OnRunFailure(run, self->world_.Now()));
  };
  // The first one reads the prompt, which the cloud does meanwhile.
  if (start.run > 1) begun_at_ = world_.Now();
  guessed_at_.reset();
  stop_ = world_.Guesser().Start({.request = std::move(request)}, std::move(events));
}

void AnswerDraft::OnGuesses(std::uint64_t run, std::span<const TokenId> tokens) {
  const Nanos now = world_.Now();
  if (guessed_at_) {
    world_.meter().OnGuess(SecondsOf(now - *guessed_at_) / static_cast<double>(tokens.size()));
  } else if (begun_at_) {
    world_.meter().OnBegun(SecondsOf(now - *begun_at_));
  }
  guessed_at_ = now;
  for (const TokenId token : tokens) {
    ++world_.counts().guessed;
    const DraftFlow::Step step = flow_.OnGuess(run, token, now);
    world_.counts().late += !step.verdicts.empty();
    Do(step);
  }
}

void AnswerDraft::SendOffer(const DraftFlow::Offer& offer) {
  tally_.OnOffer();
  const auto on_verdict = [weak = weak_from_this()](const std::optional<DraftVerdict>& verdict) {
    const auto self = weak.lock();
    if (!self) return;
    if (verdict && verdict->checked >= self->told_.checked && verdict->right >= self->told_.right) {
      self->world_.counts().checked += verdict->checked - self->told_.checked;
      self->world_.counts().right += verdict->right - self->told_.right;
      self->told_ = *verdict;
    }
    self->tally_.OnVerdict(verdict ? std::optional(self->told_.right - self->right_before_)
                                   : std::nullopt);
    self->Do(self->flow_.OnOfferOver(self->world_.Now()));
  };
  // Of all answers, so that those of a run that had drafts before go on from there.
  const std::uint64_t number = ++world_.counts().offers;
  world_.Offer({.drafts = name_, .number = number, .from = offer.from, .tokens = offer.tokens},
               on_verdict);
}

}  // namespace troupe
