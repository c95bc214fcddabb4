#include "runtime/generation.h"

#include <algorithm>
#include <utility>

namespace troupe {

std::shared_ptr<const TokenSet> BreakersOf(const Sampling& sampling, const Tokenizer& tokenizer) {
  if (sampling.dry.multiplier <= 0) return nullptr;
  const std::vector<std::string>& asked = sampling.dry.breakers;
  return std::make_shared<const TokenSet>(
      TokensWith(tokenizer, asked.empty() ? UsualBreakers() : asked));
}

std::string_view Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength:
      return "length";
    case FinishReason::kEndToken:
      return "end";
    case FinishReason::kStopString:
      return "stop";
    case FinishReason::kContextFull:
      return "context full";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

TextGeneration::TextGeneration(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                               const GenerateOptions& options, ContextRoom room, const Clock& clock,
                               GenerationSinks sinks, Sampler sampler)
    : tokenizer_(&tokenizer),
      prompt_(std::move(prompt)),
      begun_(options.begun.size()),
      max_tokens_(options.max_tokens),
      ignore_end_(options.ignore_end),
      stop_tokens_(options.stop_tokens),
      room_(room.left()),
      first_position_(room.used + prompt_.size()),
      clock_(&clock),
      start_(clock.Now()),
      sinks_(std::move(sinks)),
      sampler_(std::move(sampler)),
      constraint_(options.constraint),
      reasoning_end_(options.reasoning_end),
      expected_(options.expected),
      only_expected_(options.only_expected),
      decoder_(tokenizer),
      stops_(options.stop) {
  prompt_.insert(prompt_.end(), options.begun.begin(), options.begun.end());
  decoder_.Show(options.shown);
  if (options.reasoning) reasoning_.emplace(*options.reasoning);
}

Status TextGeneration::Check(std::size_t prompt_tokens, const GenerateOptions& options,
                             ContextRoom room) {
  if (prompt_tokens == 0) {
    return InvalidArgument("the prompt is empty, expected at least one token");
  }
  TROUPE_RETURN_IF_ERROR(Validate(options.sampler));
  if (options.reasoning && options.reasoning->most_tokens && options.reasoning_end.empty()) {
    return InvalidArgument("reasoning of at most {} tokens without a text that ends it",
                           *options.reasoning->most_tokens);
  }
  if (options.begun.size() > options.max_tokens) {
    return InvalidArgument("an answer of at most {} tokens that begins with {}", options.max_tokens,
                           options.begun.size());
  }
  prompt_tokens += options.begun.size();
  if (prompt_tokens <= room.left()) return OkStatus();
  return ContextFull("{} tokens after {} are more than the context of {} tokens holds",
                     prompt_tokens, room.used, room.capacity);
}

Result<TextGeneration> TextGeneration::Make(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                                            const GenerateOptions& options, ContextRoom room,
                                            const Clock& clock, GenerationSinks sinks) {
  TROUPE_RETURN_IF_ERROR(Check(prompt.size(), options, room));
  const std::shared_ptr<const TokenSet> breakers =
      options.breakers ? options.breakers : BreakersOf(options.sampler, tokenizer);
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler,
                          Sampler::Make(options.sampler, breakers ? *breakers : TokenSet()));
  return TextGeneration(tokenizer, std::move(prompt), options, room, clock, std::move(sinks),
                        std::move(sampler));
}

std::span<const TokenId> TextGeneration::NextTokens(std::size_t most) const {
  if (state_ == State::kReading) {
    return std::span(prompt_).subspan(read_, std::min(most, prompt_left()));
  }
  if (state_ != State::kDecoding || !has_chosen()) return {};
  return std::span(answer_.tokens).last(1);
}

std::size_t TextGeneration::MostGuesses() const {
  if (ended()) return 0;
  const std::size_t said = state_ == State::kReading ? begun_ : answer_.tokens.size();
  const std::size_t length = prompt_.size() - begun_ + said;
  // One token comes with what is fed anyway.
  const std::size_t wanted = max_tokens_ - std::min(max_tokens_, said + 1);
  return std::min(wanted, room_ - std::min(room_, length));
}

bool TextGeneration::LeavesExpected() const {
  const std::size_t said = answer_.tokens.size();
  return said > expected_.size() || answer_.tokens.back() != expected_[said - 1];
}

void TextGeneration::Skip(std::size_t tokens) {
  TROUPE_CHECK(tokens < prompt_left());
  if (tokens == 0) return;
  const std::size_t prompt = prompt_.size() - begun_;
  answer_.usage.cached_tokens = std::min(answer_.usage.cached_tokens + tokens, prompt);
  Read(tokens);
}

void TextGeneration::Read(std::size_t tokens) {
  TROUPE_CHECK(state_ == State::kReading && tokens <= prompt_left());
  read_ += tokens;
  answer_.usage.prompt_tokens = std::min(read_, prompt_.size() - begun_);
  answer_.usage.prefill_seconds = Seconds();
  if (sinks_.on_read && !sinks_.on_read(read_, prompt_.size())) return Cancel();
  if (prompt_left() > 0) return;
  for (const TokenId token : std::span(prompt_).first(prompt_.size() - begun_)) {
    sampler_.Accept(token);
  }
  state_ = State::kDecoding;
  if (max_tokens_ == 0) End(State::kFinished, FinishReason::kLength);
  TakeBegun();
}

void TextGeneration::TakeBegun() {
  const GenerationSinks told = std::exchange(sinks_, {});  // all of it was told before
  for (const TokenId token : std::span(prompt_).last(begun_)) {
    if (ended()) {
      state_ = State::kFailed;  // what nobody asked for does not end well
      status_ = InvalidArgument("the answer ends before the last token that it begins with");
      return;
    }
    if (!Take(token).ok()) return;
  }
  sinks_ = told;
}

std::optional<TokenId> TextGeneration::NextOfReasoningEnd() {
  if (end_written_ == 0 && !(reasoning_ && reasoning_->MustEnd())) return std::nullopt;
  const TokenId token = reasoning_end_[end_written_];
  end_written_ = (end_written_ + 1) % reasoning_end_.size();
  return token;
}

// A draw belongs to its position in the sequence: a token that is written in place of the model's
// takes its draw with it, and an answer whose beginning came with the prompt goes on alike.
Result<TokenId> TextGeneration::Choose(std::span<const float> logits, SamplerScratch& scratch) {
  if (const std::optional<TokenId> forced = NextOfReasoningEnd()) return *forced;
  const std::size_t position = first_position_ + answer_.tokens.size();
  if (constraint_ == nullptr) return sampler_.Sample(logits, position, scratch);
  const double start = Seconds();
  const Result<const TokenSet*> allowed = constraint_->Allowed();
  answer_.usage.rule_seconds += Seconds() - start;
  TROUPE_RETURN_IF_ERROR(allowed.status());
  return sampler_.Sample(logits, position, scratch, *allowed);
}

Result<bool> TextGeneration::EndsWith(TokenId token) {
  if (constraint_ == nullptr) return false;
  const double start = Seconds();
  const Status taken = constraint_->Advance(token);
  const Result<bool> is_done = taken.ok() ? constraint_->IsDone() : Result<bool>(taken);
  answer_.usage.rule_seconds += Seconds() - start;
  return is_done;
}

Status TextGeneration::Accept(std::span<const float> logits, SamplerScratch& scratch) {
  TROUPE_CHECK(state_ == State::kDecoding);
  if (has_chosen()) ++answer_.usage.decode_steps;
  const Result<TokenId> sampled = Choose(logits, scratch);
  if (!sampled.ok()) {
    Fail(sampled.status());
    return status_;
  }
  const TokenId token = *sampled;
  if (!has_chosen()) answer_.usage.first_token_seconds = Seconds();
  if (Ends(token)) {
    End(State::kFinished, FinishReason::kEndToken);
    return OkStatus();
  }
  if (sinks_.on_logits) {
    Status told = sinks_.on_logits(token, logits);
    if (told.code() == Code::kCancelled) {
      Cancel();
      return OkStatus();
    }
    if (!told.ok()) {
      Fail(std::move(told));
      return status_;
    }
  }
  return Append(token);
}

bool TextGeneration::Ends(TokenId token) const {
  return (!ignore_end_ && tokenizer_->IsEndOfGeneration(token)) ||
         std::ranges::find(stop_tokens_, token) != stop_tokens_.end();
}

Status TextGeneration::CheckTaken(TokenId token) {
  if (!tokenizer_->Contains(token)) {
    return InvalidArgument("token id {} is not in the vocabulary of {}", token, tokenizer_->size());
  }
  if (Ends(token)) {
    return InvalidArgument("token {} of the answer would have ended it", answer_.tokens.size());
  }
  const std::optional<TokenId> forced = NextOfReasoningEnd();
  if (forced && *forced != token) {
    return InvalidArgument("token {} of the answer is {}, expected {}, which ends its reasoning",
                           answer_.tokens.size(), token, *forced);
  }
  return OkStatus();
}

Status TextGeneration::Take(TokenId token) {
  TROUPE_CHECK(state_ == State::kDecoding);
  Status taken = CheckTaken(token);
  if (!taken.ok()) {
    Fail(std::move(taken));
    return status_;
  }
  if (!has_chosen()) answer_.usage.first_token_seconds = Seconds();
  return Append(token);
}

Status TextGeneration::Append(TokenId token) {
  sampler_.Accept(token);
  answer_.tokens.push_back(token);
  const std::string text = decoder_.Push(token);
  if (reasoning_) reasoning_->Push(text, decoder_.in_character());
  Show(stops_.Push(text));
  const Result<bool> ends = EndsWith(token);
  if (!ends.ok()) {
    Fail(ends.status());
    return status_;
  }
  if (stops_.found()) {
    answer_.stopped_by = *stops_.found();
    End(State::kFinished, FinishReason::kStopString);
  } else if (refused_) {
    Cancel();
  } else if (*ends) {
    End(State::kFinished, FinishReason::kEndToken);
  } else if (answer_.tokens.size() == max_tokens_ || (only_expected_ && LeavesExpected())) {
    End(State::kFinished, FinishReason::kLength);
  } else if (prompt_.size() - begun_ + answer_.tokens.size() > room_) {
    End(State::kFinished, FinishReason::kContextFull);
  }
  return OkStatus();
}

void TextGeneration::Finish(FinishReason reason) {
  if (!ended()) End(State::kFinished, reason);
}

void TextGeneration::Cancel() {
  if (ended()) return;
  refused_ = true;  // who cancels wants to be shown nothing more, though the answer has it
  End(State::kCancelled, FinishReason::kCancelled);
}

void TextGeneration::Fail(Status status) {
  TROUPE_CHECK(!status.ok());
  if (ended()) return;
  status_ = std::move(status);
  state_ = State::kFailed;
}

void TextGeneration::Show(const std::string& piece) {
  if (piece.empty()) return;
  answer_.text += piece;
  if (!refused_ && sinks_.on_text && !sinks_.on_text(piece)) refused_ = true;
}

void TextGeneration::End(State state, FinishReason reason) {
  state_ = state;
  answer_.finish = reason;
  answer_.usage.generated_tokens = answer_.tokens.size();
  if (reasoning_) answer_.usage.reasoning_tokens = reasoning_->tokens();
  if (!answer_.tokens.empty()) {
    answer_.usage.decode_seconds = Seconds() - answer_.usage.first_token_seconds;
  }
  Show(stops_.Push(decoder_.Flush()));
  Show(stops_.Flush());
}

}  // namespace troupe
