// One answer of an end, put together from the tokens of two places: who chooses them is
// AnswerFlow's to say, their text and the end of the answer are those of a TextGeneration, as of
// any other answer. On the loop's thread; the handle to it may be used on any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "api/callback_gate.h"
#include "base/clock.h"
#include "runtime/generation.h"
#include "runtime/ticket.h"
#include "split/answer_draft.h"
#include "split/flow/answer_flow.h"
#include "split/flow/known_prefixes.h"
#include "split/flow/place_rule.h"
#include "split/flow/token_pace.h"
#include "split/token_source.h"

namespace troupe {

// What an answer was expected to take where it began, and has taken. Nothing of one that somebody
// else had a part in, or that nobody could say anything of.
struct Predicted {
  Side place = Side::kEnd;
  bool cut = false;
  bool drafts = false;
  double factor = 1;  // by which it was multiplied
  double expected_seconds = 0, seconds = 0;
};

// What an answer knows of the machine that it is put together on.
class AnswerWorld {
 public:
  virtual ~AnswerWorld() = default;

  virtual Nanos Now() const = 0;
  virtual TokenSource& SourceIn(Side place) = 0;
  virtual bool CloudIsUsable() const = 0;
  // Tokens that a text may have there; 0: nobody knows.
  virtual std::size_t CloudContext() const { return 0; }
  // What the place has answered for this machine; null: it keeps nothing of that.
  virtual KnownPrefixes* KnownIn(Side) { return nullptr; }
  // Of an answer that begins.
  virtual PlaceChoice Choose(const AnswerTask& task) = 0;
  // Of one that is under way.
  struct SoFar {
    Side place = Side::kEnd;
    RunLeft left;              // what its run has before it
    double token_seconds = 0;  // as of UnderWay
    bool drafts = false;
  };
  struct Look {
    PlaceChoice choice;
    bool waits = false;  // nobody reads it there
    // From now to the cloud's next token; absent: it is not there, or nobody can say.
    std::optional<Nanos> next_token_in = {};
  };
  virtual Look LookAgain(const AnswerTask& task, const SoFar& so_far) = 0;
  virtual bool CloudHasRoom() const = 0;  // for another run
  // Of an answer, as answers are here.
  virtual std::size_t UsualTokens() const = 0;
  virtual FlowLimits limits() const = 0;
  // A name for drafts of a run in the cloud; absent: it does not check any, or the end makes none.
  virtual std::optional<std::uint64_t> NameForDrafts() = 0;
  // Drafts for the cloud's run of that name, which has `told` this of earlier ones; null: as many
  // answers have some as may.
  virtual std::shared_ptr<AnswerDraft> Draft(Request rest, std::uint64_t name,
                                             const DraftVerdict& told) = 0;
  // The cloud's run of an answer whose prompt is cut like that. `exact`: rows cross bit for bit.
  virtual TokenSource::Stop StartCut(const RunAsk& ask, bool exact, const CutPlan& plan,
                                     RunEvents events) = 0;
  virtual void OnWrongCloud() = 0;
  // The cloud lives, and has given an answer no token for too long.
  virtual void OnStall() = 0;
  // A line for people: where an answer goes on that has begun, and why.
  virtual void Explain(const std::string& line) = 0;
  // It is over; its user is told next.
  virtual void OnOver(const AnswerFlow& flow, const Predicted& predicted) = 0;
};

class SplitAnswer : public std::enable_shared_from_this<SplitAnswer> {
 public:
  struct Parts {
    Request request;              // its prompt is token ids
    bool crosses_exactly = true;  // whatever code the rows of cut prompts are to have
    std::optional<Nanos> deadline = {};
    TextGeneration text;  // of nothing yet, for the same request
    std::shared_ptr<Ticket> ticket;
    std::shared_ptr<CallbackGate> gate;  // null: nobody is called
  };

  // The world must outlive it.
  SplitAnswer(AnswerWorld& world, Parts parts);
  ~SplitAnswer();

  // Says where it begins, and why.
  PlaceChoice Begin();
  // From time to time, until it is over.
  void OnTime();
  // Ends it with this error.
  void Fail(const Status& why);

  bool over() const { return over_; }
  const AnswerFlow& flow() const { return flow_; }

 private:
  AnswerTask Task() const;
  Request Rest() const;
  // There is room for it: all of it, where it is known to become as long as it may.
  bool FitsCloud() const;
  bool CloudIsUsable() const { return world_.CloudIsUsable() && FitsCloud(); }
  // From time to time, as it takes a look at each token: what of the prompt is in each place.
  void LookForKept();
  void RememberWhereItWasRead();
  bool CloudWorksAlone() const { return flow_.runs(Side::kCloud) && !flow_.runs(Side::kEnd); }
  // Has drafts for the cloud's run, or none.
  void DraftIf(bool wanted);
  void DropDrafts();
  // `why` others are begun, where the flow does not know.
  void Do(FlowStep step, const std::string& why = {});
  void Take(TokenId token);
  void StartRun(const FlowStep::Start& start);
  void Explain(const FlowStep::Start& start, const std::string& why);
  // What the runs say, as far as they are not stopped.
  void OnRunEnd(RunId run, FinishReason reason, const Usage& usage);
  // Stops what runs and tells the end.
  void Finish();
  Predicted WhatWasPredicted() const;

  AnswerWorld& world_;
  Request request_;
  const bool crosses_exactly_;
  const std::optional<Nanos> deadline_;
  TextGeneration text_;
  const std::shared_ptr<Ticket> ticket_;
  const std::shared_ptr<CallbackGate> gate_;
  AnswerFlow flow_;
  std::map<RunId, TokenSource::Stop> runs_;
  std::array<std::shared_ptr<RunLeft>, 2> left_;  // of the last run in each place; null: of none
  std::optional<CutPlan> cut_;                    // of the first run in the cloud
  std::optional<std::uint64_t> draft_name_;       // of the last run in the cloud
  bool reads_cut_ = false;                        // that one, so that nobody takes drafts yet
  Nanos cut_takes_ = 0;                           // to its first token, as is expected
  std::shared_ptr<AnswerDraft> draft_;            // null: there is none
  DraftVerdict draft_told_;                       // of that run, by earlier drafts
  Nanos drafts_until_ = 0;
  std::array<std::size_t, 2> kept_ = {};     // tokens of the prompt, by Side
  std::optional<Nanos> kept_at_;             // when that was looked for
  std::array<std::size_t, 2> reached_ = {};  // tokens of the answer up to the last one from there
  bool was_cut_ = false;     // the last run in the cloud: its text is not where other requests look
  Side place_ = Side::kEnd;  // who was at work last
  TokenPace pace_;           // there
  Nanos begun_ = 0;
  Predicted predicted_;
  std::size_t expected_tokens_ = 0;
  double token_seconds_ = 0;
  bool over_ = false;
};

}  // namespace troupe
