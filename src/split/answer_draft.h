// The drafts of one answer that the cloud is choosing: has this machine's engine guess as DraftFlow
// says, and tells the cloud. On the loop's thread.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "split/flow/draft_flow.h"
#include "split/flow/draft_pace.h"
#include "split/flow/draft_tally.h"
#include "split/token_source.h"
#include "split/wire/draft_offer.h"

namespace troupe {

// Sums since the end was opened.
struct DraftCounts {
  std::uint64_t guessed = 0;  // tokens
  std::uint64_t late = 0;     // of these: when the cloud had told its token already
  std::uint64_t offers = 0;   // sent
  // As the cloud has said with the last offer of each answer: what it has checked, and of that what
  // was right.
  std::uint64_t checked = 0;
  std::uint64_t right = 0;
  // Answers, or parts of them, by which the next ones are planned; what was planned of their tokens
  // (also by what others took), and what these took.
  std::uint64_t learned = 0;
  double expected_seconds = 0, seconds = 0;

  bool operator==(const DraftCounts&) const = default;
};

// What the drafts of all answers share.
class DraftWorld {
 public:
  virtual ~DraftWorld() = default;

  virtual Nanos Now() const = 0;
  // Of guesses, which need not be exact.
  virtual TokenSource& Guesser() = 0;
  using OnVerdict = std::function<void(const std::optional<DraftVerdict>& verdict)>;
  virtual void Offer(const DraftOffer& offer, OnVerdict on_verdict) = 0;
  // Of now, for an answer that has drafts.
  virtual DraftPlan Pace() const = 0;
  virtual double RoundTripSeconds() const = 0;
  virtual DraftMeter& meter() = 0;
  virtual DraftCounts& counts() = 0;
  // An answer has no more drafts.
  virtual void OnDrafted(const DraftedAnswer& drafted) = 0;
};

class AnswerDraft : public std::enable_shared_from_this<AnswerDraft> {
 public:
  // Of the cloud's run of that name, for a request that begins with all tokens so far. `told`: what
  // the cloud has said of earlier drafts for it. The world must outlive it.
  AnswerDraft(DraftWorld& world, Request rest, std::uint64_t name, const DraftVerdict& told = {});
  ~AnswerDraft();

  // From time to time; also the beginning.
  void OnTime();
  void OnTold(TokenId token);

  // What the cloud has said last of drafts for this run.
  const DraftVerdict& told() const { return told_; }

 private:
  void Do(const DraftFlow::Step& step);
  void StartRun(const DraftFlow::Start& start);
  void SendOffer(const DraftFlow::Offer& offer);
  void OnGuesses(std::uint64_t run, std::span<const TokenId> tokens);

  DraftWorld& world_;
  Request request_;
  const std::uint64_t name_;
  DraftFlow flow_;
  DraftPlan plan_;  // as of the last look
  DraftTally tally_;
  TokenSource::Stop stop_;                      // null: nothing runs
  std::optional<Nanos> begun_at_, guessed_at_;  // of the run: before its first guess, and after
  const std::uint64_t right_before_;            // of earlier drafts
  DraftVerdict told_;                           // the last one
};

}  // namespace troupe
