// One answer being written, without an engine: which tokens to feed next, and from the logits of a
// pass the next token, the text that is complete, and when to stop. Whoever runs the passes drives
// it (batch_loop.h). Sampling, decoding and stop strings are text/'s. Threads: one at a time.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "expert/pass_facts.h"
#include "model/expert_source.h"
#include "text/answer_parts/reasoning_meter.h"
#include "text/draft/offered_draft.h"
#include "text/grammar/token_constraint.h"
#include "text/sampler.h"
#include "text/stop_strings.h"
#include "text/stream_decoder.h"

namespace troupe {

struct GenerateOptions {
  std::size_t max_tokens = 128;
  Sampling sampler;
  std::vector<std::string> stop;
  bool ignore_end = false;                // goes on past the tokens that end an answer
  std::vector<TokenId> stop_tokens = {};  // end it as well
  std::vector<TokenId> shown = {};        // special tokens whose names are text, in ascending order
  // Which tokens may come next: of this answer alone. Null: all.
  std::shared_ptr<TokenConstraint> constraint = {};
  std::optional<Reasoning> reasoning = {};
  std::vector<TokenId> reasoning_end = {};  // of Reasoning::end; not empty if tokens are limited
  std::vector<TokenId> begun = {};          // Request::begun
  // What the answer may be, as somebody else has it: checked in as few passes as can be. If it is
  // all that is wanted, the answer ends with the first token that is not as expected, or with the
  // one that follows.
  std::vector<TokenId> expected = {};
  bool only_expected = false;
  // What somebody expects as it goes on; null: nobody.
  std::shared_ptr<OfferedDraft> offered = {};
  // The tokens of sampler.dry.breakers, found in the whole vocabulary; null: Make finds them.
  std::shared_ptr<const TokenSet> breakers = {};
};

// Null: DRY is off.
std::shared_ptr<const TokenSet> BreakersOf(const Sampling& sampling, const Tokenizer& tokenizer);

// Called with each piece of text as soon as its characters are complete; false cancels, and it is
// not called again.
using TextSink = std::function<bool(std::string_view piece)>;
// Called with each generated token and the logits it was chosen from; kCancelled ends the answer
// before that token, another error fails it.
using LogitsSink = std::function<Status(TokenId token, std::span<const float> logits)>;

// Called when a part of the prompt was read: tokens read so far, of all. False cancels.
using ReadSink = std::function<bool(std::size_t read, std::size_t all)>;

struct GenerationSinks {
  TextSink on_text = {};
  LogitsSink on_logits = {};
  ReadSink on_read = {};
};

// Positions of the sequence that are filled before the prompt, and those it has altogether.
struct ContextRoom {
  std::size_t used = 0;
  std::size_t capacity = 0;

  std::size_t left() const { return capacity - used; }
};

class TextGeneration {
 public:
  // Reading -> Decoding -> Finished; Cancelled and Failed can be reached from the first two.
  enum class State { kReading, kDecoding, kFinished, kCancelled, kFailed };

  // What Make would refuse: an empty prompt, bad sampler options and more begun tokens than may be
  // (kInvalidArgument), a prompt that does not fit with them (kResourceExhausted).
  static Status Check(std::size_t prompt_tokens, const GenerateOptions& options, ContextRoom room);

  // Time counts from here. Tokenizer and clock must outlive it.
  static Result<TextGeneration> Make(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                                     const GenerateOptions& options, ContextRoom room,
                                     const Clock& clock, GenerationSinks sinks = {});

  State state() const { return state_; }
  bool ended() const { return state_ != State::kReading && state_ != State::kDecoding; }
  const Status& status() const { return status_; }  // why it failed

  // What to feed next: while reading, the next tokens of the prompt, `most` at most; while
  // decoding, the last token, or nothing if the logits of the prompt are still to be accepted.
  std::span<const TokenId> NextTokens(std::size_t most) const;
  Phase phase() const { return state_ == State::kReading ? Phase::kPrompt : Phase::kDecode; }
  std::size_t prompt_left() const { return prompt_.size() - read_; }

  // With the tokens that the answer begins with, which are read behind it.
  std::span<const TokenId> prompt() const { return prompt_; }

  // Tokens of a draft that may be checked behind what NextTokens gave: as many as the answer can
  // still use. Of a prompt: behind its last token.
  std::size_t MostGuesses() const;

  // `tokens` more tokens of the prompt are in the sequence, though nobody fed them. Not the last.
  void Skip(std::size_t tokens);
  // `tokens` more tokens of the prompt were fed. After the last of them Accept is due, unless no
  // token was asked for. REQUIRES: reading.
  void Read(std::size_t tokens);

  // The logits after what NextTokens gave; chooses the next token, for which the scratch is used.
  // Fails if they are no logits, or if a sink fails. REQUIRES: decoding.
  Status Accept(std::span<const float> logits, SamplerScratch& scratch);
  // The next token, which the same model has chosen for the same request elsewhere. Fails if it
  // cannot have. REQUIRES: decoding.
  Status Take(TokenId token);
  // Whoever chose the tokens says that the answer has ended. Nothing after the end.
  void Finish(FinishReason reason);

  // Both do nothing after the end. Nothing more is shown.
  void Cancel();
  void Fail(Status status);

  const Answer& answer() const { return answer_; }
  // Its costs: the times of the request are known here, and those who run the passes fill in what
  // the passes took (queue_seconds, decode_pass_seconds and all of experts).
  Usage& usage() { return answer_.usage; }
  Answer TakeAnswer() && { return std::move(answer_); }

 private:
  TextGeneration(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                 const GenerateOptions& options, ContextRoom room, const Clock& clock,
                 GenerationSinks sinks, Sampler sampler);

  double Seconds() const { return static_cast<double>(clock_->Now() - start_) * 1e-9; }
  Result<TokenId> Choose(std::span<const float> logits, SamplerScratch& scratch);
  bool Ends(TokenId token) const;
  Status CheckTaken(TokenId token);
  // Takes it into the answer, which may end with it.
  Status Append(TokenId token);
  // Those that the answer begins with, once they are read.
  void TakeBegun();
  bool has_chosen() const { return answer_.tokens.size() > begun_; }
  // Of the end of the reasoning, if it is to be written now.
  std::optional<TokenId> NextOfReasoningEnd();
  // Whether the constraint, if there is one, lets nothing more come after the token.
  Result<bool> EndsWith(TokenId token);
  bool LeavesExpected() const;
  void Show(const std::string& piece);
  void End(State state, FinishReason reason);

  const Tokenizer* tokenizer_;
  std::vector<TokenId> prompt_;  // and behind it the answer's first tokens
  std::size_t begun_;            // of these
  std::size_t read_ = 0;
  std::size_t max_tokens_;
  bool ignore_end_;
  std::vector<TokenId> stop_tokens_;
  std::size_t room_;            // for prompt and answer
  std::size_t first_position_;  // in its sequence, of the answer
  const Clock* clock_;
  Nanos start_;
  GenerationSinks sinks_;
  Sampler sampler_;
  std::shared_ptr<TokenConstraint> constraint_;
  std::optional<ReasoningMeter> reasoning_;
  std::vector<TokenId> reasoning_end_;
  std::size_t end_written_ = 0;  // tokens of it; 0: it is not being written
  std::vector<TokenId> expected_;
  bool only_expected_;
  StreamDecoder decoder_;
  StopMatcher stops_;
  State state_ = State::kReading;
  bool refused_ = false;  // no more text is to be shown
  Status status_;
  Answer answer_;
};

}  // namespace troupe
