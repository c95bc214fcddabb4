// What an end guesses of one answer that its cloud is choosing: where its run of guesses begins,
// how far it goes, when it is begun anew, and what the cloud is told of it. Guessing goes on while
// the cloud checks. Whoever it tells what to do has the engine and the link. Pure.
// Design: docs/design/end-cloud.md.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace troupe {

struct DraftLimits {
  // Tokens that a run may be behind the cloud before it begins anew. One that has not given a guess
  // yet is waited for: it would have to wait again.
  std::size_t patience = 4;
  std::size_t most_offers = 4;   // under way to the cloud at a time
  Nanos pause = 1'000'000'000;   // after a run that failed
  std::size_t most_tokens = 64;  // of an offer
};

class DraftFlow {
 public:
  struct Start {
    std::uint64_t run = 0;
    std::vector<TokenId> begun;  // of the answer, of which the last ones may be guesses
    std::size_t tokens = 0;      // to guess behind them

    bool operator==(const Start&) const = default;
  };
  struct Offer {
    std::size_t from = 0;
    std::vector<TokenId> tokens;

    bool operator==(const Offer&) const = default;
  };
  // What is to be done, in this order.
  struct Step {
    std::vector<bool> verdicts;  // of guesses, in their order
    bool stop = false;           // the run that is under way
    std::optional<Start> start;
    std::optional<Offer> offer;

    bool operator==(const Step&) const = default;
  };

  // The answer's tokens so far, and how many it may have.
  DraftFlow(std::vector<TokenId> told, std::size_t most_tokens, const DraftLimits& limits = {})
      : limits_(limits), most_tokens_(most_tokens), told_(std::move(told)) {}

  // To be so far ahead of what the cloud has told from now on; 0: nothing is guessed.
  Step SetAhead(std::size_t tokens, Nanos now);
  void SetOfferPause(Nanos pause) { offer_pause_ = pause; }
  // The cloud has told the next token.
  Step OnTold(TokenId token, Nanos now);
  // What the run says. One that was stopped, or has ended, says nothing any more.
  Step OnGuess(std::uint64_t run, TokenId token, Nanos now);
  Step OnRunEnd(std::uint64_t run, FinishReason reason, Nanos now);
  Step OnRunFailure(std::uint64_t run, Nanos now);
  // The cloud has taken an offer, or it was lost.
  Step OnOfferOver(Nanos now);
  Step OnTime(Nanos now);

  bool runs() const { return run_.has_value(); }
  const std::vector<TokenId>& told() const { return told_; }
  const std::deque<TokenId>& guesses() const { return guesses_; }  // behind what was told

 private:
  struct Run {
    std::uint64_t id = 0;
    std::size_t position = 0;  // in the answer, of its next guess
    bool has_guessed = false;
  };

  bool IsTooLate(const Run& run) const {
    return run.has_guessed && told_.size() > run.position + limits_.patience;
  }
  void StopRun(Step& step);
  void GoOn(Nanos now, Step& step);
  void MaybeOffer(Nanos now, Step& step);

  const DraftLimits limits_;
  const std::size_t most_tokens_;
  std::vector<TokenId> told_;
  std::deque<TokenId> guesses_;
  std::optional<Run> run_;
  std::uint64_t last_run_ = 0;
  std::size_t ahead_ = 0;
  bool thinks_it_ends_ = false;  // the answer, behind the guesses
  Nanos not_before_ = 0;         // another run
  bool has_news_ = false;        // guesses that no offer had
  std::size_t offers_ = 0;       // under way
  Nanos offer_pause_ = 0, offered_at_ = 0;
};

}  // namespace troupe
