#include "troupe/eval_flags.h"

#include <algorithm>

#include "troupe/options.h"

namespace troupe {
namespace {

constexpr std::size_t kWindow = 512;  // tokens that are scored from an empty cache

}  // namespace

void EvalFlags::AddTo(Options& options) {
  engine_.AddTo(options);
  options.Heading("Scoring");
  text_.AddTo(options);
  options.Add("-n,--tokens", most_tokens_, "Most tokens of the text to use (all)")
      .Between(std::size_t{2}, kMostTokens)
      .Type("N");
  options.Add("--window", window_, "Number of tokens scored from an empty KV cache (512)")
      .Between(std::size_t{2}, kMostTokens)
      .Type("N");
  options
      .Add("--together", together_,
           "Most tokens computed in one pass: 1 as in generation, 3 as in a batch of three (all; 1 "
           "with --substitute, --quality, --latency or --low-copy decode, which are for generated "
           "tokens)")
      .Between(std::size_t{1}, kMostTokens)
      .Type("N");
  options.Add("--warm-up", warm_up_, "First tokens of a window that are read but not scored (0)")
      .Between(std::size_t{0}, kMostTokens)
      .Type("N");
  options.Heading(kOutputHeading);
  AddJsonOption(options, json_);
}

std::optional<std::size_t> EvalFlags::together() const {
  if (together_) return together_;
  const OffloadOptions offload = engine_.options().offload;
  const bool decodes_inexactly =
      !std::holds_alternative<Exact>(offload.lossiness) || offload.low_copies.decode;
  return decodes_inexactly ? std::optional<std::size_t>(1) : std::nullopt;
}

EngineOptions EvalFlags::engine_options() const { return Flags().options(); }

EngineFlags EvalFlags::Flags() const {
  EngineFlags flags = engine_;
  flags.SubstituteUpTo(static_cast<std::uint32_t>(together().value_or(1)));
  // What low copies or substitutes answer depends on what is in memory: unless something is read
  // ahead, the same on every run.
  flags.HandOutInOrder();
  return flags;
}

Result<std::unique_ptr<Engine>> EvalFlags::Open(std::optional<TraceScores> trace) const {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Flags().Open(window_.value_or(kWindow), trace));
  if (engine->config().encoder) {
    return Error(Code::kUnimplemented,
                 "{}: an encoder-decoder, which eval does not measure: a text's tokens predict "
                 "nothing in it, only an answer's do",
                 engine->path());
  }
  return engine;
}

Status EvalFlags::LoadText() {
  TROUPE_RETURN_IF_ERROR(text_.Load(most_tokens_.value_or(kMostTokens)));
  engine_.TakesBeside([text = text_.Memory()](const ModelConfig&) { return text; });
  return OkStatus();
}

Result<ScoredText> EvalFlags::TakeText(const Tokenizer& tokenizer) {
  return text_.Tokens(tokenizer, most_tokens_.value_or(kMostTokens));
}

EvaluationOptions EvalFlags::options(const ScoredText& text, std::size_t room) const {
  return {.window = window_.value_or(std::min(kWindow, room)),
          .together = together(),
          .warm_up = warm_up_,
          .begin = text.begin};
}

}  // namespace troupe
