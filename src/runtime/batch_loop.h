// The requests under way and the passes that serve them, one Step at a time, without a thread:
// requests join and leave between passes, each with memory of its own from the first pass to the
// last. What goes into a pass is expert/flow/batch_policy.h's to say. Submission from other threads
// is batcher.h's. Threads: one, except for Check.
#pragma once

#include <troupe/batch_use.h>
#include <troupe/state.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "expert/flow/batch_policy.h"
#include "expert/flow/row_speed.h"
#include "runtime/answer_drafts.h"
#include "runtime/generation.h"
#include "runtime/pass_runner.h"
#include "runtime/reading_pace.h"
#include "runtime/ticket.h"
#include "text/draft/drafters.h"
#include "text/tokenizer.h"

namespace troupe {

// Of a token of the prompt but the first: the logits after those before it.
using OnPromptLogits = std::function<void(TokenId token, std::span<const float> logits)>;

struct BatchRequest {
  std::vector<TokenId> prompt;
  GenerateOptions options;
  GenerationSinks sinks = {};  // called on the thread that steps
  bool exact = false;
  std::optional<Pooling> embed = {};   // no token is generated then
  OnPromptLogits on_prompt = {};       // called as the sinks are
  std::optional<Nanos> deadline = {};  // by the loop's clock: past it the request fails
  Ticket::OnEnd on_end = {};           // its ticket's, called as the sinks are
  std::string salt = {};               // of the prefix cache, as Request::cache_salt
  std::size_t common = 0;              // tokens that other prompts may begin with, as SequenceAsk's

  // Of the prompt, and of what its answer begins with.
  std::size_t tokens_to_read() const { return prompt.size() + options.begun.size(); }
};

// Sums since the loop was made, and what is under way now.
struct BatchCounters {
  std::size_t waiting = 0;
  std::size_t reading = 0;
  std::size_t decoding = 0;
  std::size_t to_read = 0;     // tokens of the prompts of all these
  double read_seconds = 0;     // a token of a prompt, as ReadingPace::token_seconds
  std::uint64_t finished = 0;  // with an answer
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t passes = 0;
  std::uint64_t failed_passes = 0;
  std::uint64_t abandoned_passes = 0;  // between two layers, as nobody wanted them any more
  PassRowCounts pass_rows;             // of those that did not fail
  std::uint64_t prompt_tokens = 0;     // read
  std::uint64_t cached_tokens = 0;     // of prompts, and found in the prefix cache instead
  std::uint64_t cache_hits = 0;        // requests that found some there
  std::uint64_t generated_tokens = 0;
  double pass_seconds = 0;
  double rule_seconds = 0;  // beside them, as of Usage
  SpeculationUse speculation;
  DraftGovernor::Compared drafts_compared;
  ExpertUsage experts;
  RowSpeed speed;
  RowSpeed exact_speed;        // of passes whose rows were all answered exactly
  double request_seconds = 0;  // as BatchLoop::request_seconds
  PrefixCacheState prefix_cache;
  CardState card;
};

struct EndedRequest {
  std::shared_ptr<Ticket> ticket;
  Result<Answer> answer;
};

class BatchLoop {
 public:
  // All must outlive it. limits.most_rows is cut to what the runner takes. Answers that are exact
  // get drafts of these drafters; of the runner's models, of those that it has.
  BatchLoop(PassRunner& runner, const Tokenizer& tokenizer, const Clock& clock,
            const BatchLimits& limits, const DraftChoice& drafters = {});

  // Whether a request can ever be served: kInvalidArgument, or kResourceExhausted if it is too long
  // for the context. Any thread.
  Status Check(const BatchRequest& request) const;

  // since: when it was submitted, by the loop's clock. REQUIRES: Check accepts it.
  void Add(std::shared_ptr<Ticket> ticket, BatchRequest request, Nanos since);

  // Drops what was cancelled or is too late, admits what there is memory for, and runs one pass if
  // there is work. Gives those that have ended.
  std::vector<EndedRequest> Step();

  // Ends all that is under way or waiting, with this error; but what was cancelled before has its
  // answer, as after a Step.
  std::vector<EndedRequest> EndAll(const Status& why);

  // Between two passes: how many rows of prompts, `most` at most, others may take through layers
  // before the next one. `seconds` says how long n rows take. Beside answers under way they keep to
  // the time of a pass as this loop's own prompts do, and leave half of it to these.
  std::uint32_t RowsBetween(const RowSeconds& seconds, std::uint32_t most) const;
  // Others had the engine for so long since the last pass: the next one is as much shorter.
  void NoteBetween(double seconds) { between_seconds_ += seconds; }

  // Of the passes to come.
  void set_target_seconds(double seconds) {
    limits_.target_seconds = seconds;
    warned_of_target_ = false;
  }

  // Of the passes to come, in what passes are said to take (RowSpeedMeter::set_new_share).
  void set_speed_share(double share) {
    meter_.set_new_share(share);
    exact_meter_.set_new_share(share);
  }

  std::size_t size() const { return waiting_.size() + active_.size(); }
  BatchCounters counters() const;
  // Those that run, and behind them those that wait; `most` at most.
  std::vector<RequestState> Requests(std::size_t most) const;
  // From a request's first pass to its end, on average; 0 before the first end.
  double request_seconds() const { return request_seconds_; }

 private:
  struct Waiting {
    std::shared_ptr<Ticket> ticket;
    BatchRequest request;
    Nanos since = 0;
  };
  struct Active {
    std::shared_ptr<Ticket> ticket;
    TextGeneration generation;
    SequenceId sequence = 0;
    std::uint32_t whole = 0;  // as WholeOf
    bool exact = false;
    std::string salt;
    std::unique_ptr<EmbeddingSum> embedding;  // null: none is asked for
    OnPromptLogits on_prompt;
    std::unique_ptr<AnswerDrafts> drafts;  // null: it has none
    std::vector<TokenId> fed = {};         // of the pass: with a draft behind
    std::uint32_t guessed = 0;             // tokens that are offered for it
    std::optional<Nanos> deadline;
    std::uint32_t passed_over = 0;
    Nanos since = 0;

    // Nothing of its prompt is found: somebody wants something of every token.
    bool ReadsAll() const { return embedding != nullptr || on_prompt; }
  };

  static double Seconds(Nanos from, Nanos to) { return static_cast<double>(to - from) * 1e-9; }

  // Tokens that a prompt begins with and that are read in one pass: more than it has if it lacks
  // the one that they end with; 0: it may be cut anywhere.
  std::size_t WholeOf(std::span<const TokenId> prompt) const;
  Status CheckWhole(const BatchRequest& request) const;
  void DropUnwanted(std::vector<EndedRequest>& ended);
  void Admit(std::vector<EndedRequest>& ended);
  void SkipCached(Active& active, std::size_t tokens);
  // Whether a request that came before it is about to read a part of its prompt for it.
  bool WaitsForPrefix(const Active& active) const;
  void RunPass();
  bool ReadsOn() const;
  std::unique_ptr<AnswerDrafts> DraftsFor(const TextGeneration& generation, bool exact,
                                          const GenerateOptions& options, SequenceId sequence,
                                          RequestId request) const;
  std::unique_ptr<ModelDrafter> ModelFor(std::unique_ptr<DraftSequence> sequence,
                                         DraftSource source, const GenerateOptions& options) const;
  void OfferDrafts();
  void CountDrafting(Active& active);
  void WarnOfTarget(const BatchChoice& choice);
  std::vector<PassRows> RowsOf(const BatchChoice& choice);
  static RowVisitor VisitorOf(const Active& active);
  Status RunRows(std::span<const PassRows> rows);
  bool WasAbandoned(const Status& status, std::span<const PassRows> rows);
  void TakeResults(std::span<const PassRows> rows, double seconds);
  // How many of the guesses of a pass's group stay. Adds the time of computing their logits.
  std::uint32_t TakeGuesses(Active& active, std::size_t group, const PassRows& rows,
                            double& check_seconds);
  void NoteDrafts(std::span<const PassRows> rows, std::span<const std::uint32_t> right,
                  double seconds);
  void CollectEnded(std::vector<EndedRequest>& ended);
  const Active& ActiveOf(RequestId id) const;
  Active& ActiveOf(RequestId id);

  PassRunner& runner_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  const RunnerLimits runner_limits_;
  BatchLimits limits_;
  std::deque<Waiting> waiting_;  // in order of arrival, as active_ is
  std::vector<Active> active_;
  RowSpeedMeter meter_, exact_meter_;
  ReadingPace pace_;
  bool warned_of_target_ = false;
  const DraftChoice drafters_;
  DraftKnowledge drafts_;
  double drafting_seconds_ = 0;  // for the pass under way
  double between_seconds_ = 0;   // that others had since the last pass
  BatchCounters counters_;
  double request_seconds_ = 0;
};

}  // namespace troupe
