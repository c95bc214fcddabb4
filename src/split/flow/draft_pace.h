// How far an end drafts ahead of its cloud, and what a token of an answer takes then: from what
// guesses take here, how often they are right, what the cloud takes for a token, and the round
// trip. Whoever drafts is draft_flow.h's to tell what to do. Pure. Design:
// docs/design/end-cloud.md.
#pragma once

#include <cstddef>
#include <optional>

#include "base/clock.h"
#include "split/flow/forecast_factor.h"

namespace troupe {

struct DraftFacts {
  double guess_seconds = 0;       // a guess of the end takes
  double begin_seconds = 0;       // from where the cloud has said another token to the next guess
  double cloud_seconds = 0;       // a token takes that the cloud chooses without drafts
  double round_trip_seconds = 0;  // of the link
  double odds = 0;                // that a guess is right whose forerunners were
  // Of the right guesses that should be there in time, what the cloud takes: some come too late all
  // the same, and a busy cloud checks few.
  double taken = 1;
};

struct DraftPlan {
  std::size_t ahead = 0;     // tokens that the end is to be ahead of what the cloud has told
  double token_seconds = 0;  // of the answer, expected
  // Of its tokens, those whose guesses are right and in time, as far as can be reckoned; what such
  // a token takes that the cloud takes from its draft, and any other one.
  double in_time = 0, drafted_seconds = 0, cloud_seconds = 0;

  bool operator==(const DraftPlan&) const = default;
};

// The cloud goes on while a draft is made and sent, and checks what has come at each of its passes.
// So a draft is worth nothing until it has overtaken the cloud, which takes a round trip and a
// beginning's worth of tokens; from there on to the next wrong guess, tokens come as fast as they
// are guessed, as far as the cloud takes them. All others take what the cloud alone takes. None
// where the end guesses no faster than the cloud chooses.
DraftPlan PlanDraft(const DraftFacts& facts);

// What an answer with drafts took (draft_tally.h).
struct DraftedAnswer {
  std::size_t tokens = 0;       // that came while it had drafts of which something was expected
  double seconds = 0;           // these took
  double expected_seconds = 0;  // as was planned
  // They would have taken without drafts, and if all were the draft's.
  double cloud_seconds = 0, drafted_seconds = 0;
  double judged = 0;   // of the tokens, those of which is known what the cloud took of drafts
  double in_time = 0;  // of these: were planned to come by right guesses in time
  double right = 0;    // and have
};

// Running means of what drafts were like here.
class DraftMeter {
 public:
  void OnBegun(double seconds) { begin_.Add(seconds); }
  void OnGuess(double seconds) { guess_.Add(seconds); }
  // The cloud has told the token of a guess whose forerunners were right.
  void OnVerdict(bool is_right);
  // Corrects what is planned, in two ways: by what the cloud took of the guesses that should be in
  // time, and by how long tokens took beside that. Both are forgotten with time, so that drafts are
  // tried again. False: it was too short to learn from.
  bool OnAnswer(const DraftedAnswer& answer, Nanos now);

  // Where nothing was measured, guesses take what an exact token of this machine takes.
  DraftPlan Plan(double own_token_seconds, double cloud_seconds, double round_trip_seconds,
                 Nanos now) const;
  double Odds() const;
  double Taken(Nanos now) const;  // DraftFacts::taken
  // How many times longer tokens take than these facts say.
  double Factor(Nanos now) const { return factor_.At(now); }

 private:
  class Mean {
   public:
    void Add(double value);
    double Or(double otherwise) const { return value_.value_or(otherwise); }

   private:
    std::optional<double> value_;
  };
  double Kept(Nanos now) const;  // of what was learned of the guesses that are taken

  Mean begin_, guess_;
  double right_ = 0, tried_ = 0;  // of which older ones count less
  double taken_ = 0, in_time_ = 0;
  Nanos taken_at_ = 0;
  ForecastFactor factor_;
};

}  // namespace troupe
