// How far an end drafts ahead of its cloud, and what a token of an answer takes then: from what
// guesses take here, how often they are right, what the cloud takes for a token, and the round
// trip. Whoever drafts is draft_flow.h's to tell what to do. Pure. Design:
// docs/design/end-cloud.md.
#pragma once

#include <cstddef>
#include <optional>

namespace troupe {

struct DraftFacts {
  double guess_seconds = 0;       // a guess of the end takes
  double begin_seconds = 0;       // from where the cloud has said another token to the next guess
  double cloud_seconds = 0;       // a token takes that the cloud chooses without drafts
  double round_trip_seconds = 0;  // of the link
  double odds = 0;                // that a guess is right whose forerunners were
};

struct DraftPlan {
  std::size_t ahead = 0;     // tokens that the end is to be ahead of what the cloud has told
  double token_seconds = 0;  // of the answer, expected

  bool operator==(const DraftPlan&) const = default;
};

// The cloud goes on while a draft is made and sent, and checks what has come at each of its passes.
// So a draft is worth nothing until it has overtaken the cloud, which takes a round trip and a
// beginning's worth of tokens; from there on to the next wrong guess, tokens come as fast as they
// are guessed. None where the end guesses no faster than the cloud chooses.
DraftPlan PlanDraft(const DraftFacts& facts);

// Running means of what drafts were like here.
class DraftMeter {
 public:
  void OnBegun(double seconds) { begin_.Add(seconds); }
  void OnGuess(double seconds) { guess_.Add(seconds); }
  // The cloud has told the token of a guess whose forerunners were right.
  void OnVerdict(bool is_right);
  // What a token of an answer took with drafts, which corrects what is planned.
  void OnAnswer(double token_seconds, double own_token_seconds, double cloud_seconds,
                double round_trip_seconds);

  // Where nothing was measured, guesses take what an exact token of this machine takes.
  DraftPlan Plan(double own_token_seconds, double cloud_seconds, double round_trip_seconds) const;
  double Odds() const;

 private:
  DraftFacts Facts(double own_token_seconds, double cloud_seconds, double round_trip_seconds) const;

  class Mean {
   public:
    void Add(double value);
    double Or(double otherwise) const { return value_.value_or(otherwise); }

   private:
    std::optional<double> value_;
  };

  Mean begin_, guess_;
  Mean off_by_;                   // what answers took, of what was planned
  double right_ = 0, tried_ = 0;  // of which older ones count less
};

}  // namespace troupe
