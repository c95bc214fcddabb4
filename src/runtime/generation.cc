#include "runtime/generation.h"

#include <algorithm>

namespace troupe {
namespace {

double PerSecond(std::size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

}  // namespace

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

double GenerateResult::PrefillTokensPerSecond() const {
  return PerSecond(prompt_tokens, prefill_seconds);
}

double GenerateResult::DecodeTokensPerSecond() const {
  return PerSecond(decode_steps, decode_seconds);
}

TextGeneration::TextGeneration(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                               const GenerateOptions& options, std::size_t room, const Clock& clock,
                               GenerationSinks sinks, Sampler sampler)
    : tokenizer_(&tokenizer),
      prompt_(std::move(prompt)),
      max_tokens_(options.max_tokens),
      ignore_end_(options.ignore_end),
      room_(room),
      clock_(&clock),
      start_(clock.Now()),
      sinks_(std::move(sinks)),
      sampler_(std::move(sampler)),
      decoder_(tokenizer),
      stops_(options.stop) {}

Status TextGeneration::Check(std::size_t prompt_tokens, const GenerateOptions& options,
                             ContextRoom room) {
  if (prompt_tokens == 0) {
    return InvalidArgument("the prompt is empty, expected at least one token");
  }
  TROUPE_RETURN_IF_ERROR(options.sampler.Validate());
  if (prompt_tokens <= room.left()) return OkStatus();
  return Error(Code::kResourceExhausted,
               "{} tokens after {} are more than the context of {} tokens holds", prompt_tokens,
               room.used, room.capacity);
}

Result<TextGeneration> TextGeneration::Make(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                                            const GenerateOptions& options, ContextRoom room,
                                            const Clock& clock, GenerationSinks sinks) {
  TROUPE_RETURN_IF_ERROR(Check(prompt.size(), options, room));
  TROUPE_ASSIGN_OR_RETURN(Sampler sampler, Sampler::Make(options.sampler));
  return TextGeneration(tokenizer, std::move(prompt), options, room.left(), clock, std::move(sinks),
                        std::move(sampler));
}

std::span<const TokenId> TextGeneration::NextTokens(std::size_t most) const {
  if (state_ == State::kReading) {
    return std::span(prompt_).subspan(result_.prompt_tokens, std::min(most, prompt_left()));
  }
  if (state_ != State::kDecoding || result_.token_ids.empty()) return {};
  return std::span(result_.token_ids).last(1);
}

void TextGeneration::Read(std::size_t tokens) {
  TROUPE_CHECK(state_ == State::kReading && tokens <= prompt_left());
  result_.prompt_tokens += tokens;
  result_.prefill_seconds = Seconds();
  if (prompt_left() > 0) return;
  for (const TokenId token : prompt_) sampler_.Accept(token);
  state_ = State::kDecoding;
  if (max_tokens_ == 0) End(State::kFinished, FinishReason::kLength);
}

Status TextGeneration::Accept(std::span<const float> logits, SamplerScratch& scratch) {
  TROUPE_CHECK(state_ == State::kDecoding);
  if (!result_.token_ids.empty()) ++result_.decode_steps;
  const Result<TokenId> sampled = sampler_.Sample(logits, scratch);
  if (!sampled.ok()) {
    Fail(sampled.status());
    return status_;
  }
  const TokenId token = *sampled;
  if (result_.token_ids.empty()) result_.first_token_seconds = Seconds();
  if (!ignore_end_ && tokenizer_->IsEndOfGeneration(token)) {
    End(State::kFinished, FinishReason::kEndToken);
    return OkStatus();
  }
  if (sinks_.on_logits) {
    if (Status told = sinks_.on_logits(token, logits); !told.ok()) {
      Fail(std::move(told));
      return status_;
    }
  }
  sampler_.Accept(token);
  result_.token_ids.push_back(token);
  Show(stops_.Push(decoder_.Push(token)));
  if (stops_.found()) {
    End(State::kFinished, FinishReason::kStopString);
  } else if (refused_) {
    Cancel();
  } else if (result_.token_ids.size() == max_tokens_) {
    End(State::kFinished, FinishReason::kLength);
  } else if (result_.prompt_tokens + result_.token_ids.size() > room_) {
    End(State::kFinished, FinishReason::kContextFull);
  }
  return OkStatus();
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
  result_.text += piece;
  if (!refused_ && sinks_.on_text && !sinks_.on_text(piece)) refused_ = true;
}

void TextGeneration::End(State state, FinishReason reason) {
  state_ = state;
  result_.finish = reason;
  if (!result_.token_ids.empty()) {
    result_.decode_seconds = Seconds() - result_.first_token_seconds;
  }
  Show(stops_.Push(decoder_.Flush()));
  Show(stops_.Flush());
}

}  // namespace troupe
