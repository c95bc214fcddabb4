#include "troupe/eval_flags.h"

#include <algorithm>

#include "troupe/options.h"

namespace troupe {
namespace {

constexpr std::size_t kWindow = 512;  // tokens that are scored from an empty cache

}  // namespace

void EvalFlags::AddTo(CLI::App& app) {
  engine_.AddTo(app);
  text_.AddTo(app);
  app.add_option("--tokens", most_tokens_, "Of the text at most so many tokens (all)")
      ->check(Between(std::size_t{2}, kMostTokens))
      ->type_name("N");
  app.add_option("--window", window_, "Tokens scored from an empty cache (512)")
      ->check(Between(std::size_t{2}, kMostTokens))
      ->type_name("N");
  app.add_option("--together", together_,
                 "Tokens that go through the layers in one pass, at most: 1 as when tokens are "
                 "generated, 3 as a batch of three (all; 1 with --substitute, --quality, --latency "
                 "or --low-copy decode, which are for tokens generated)")
      ->check(Between(std::size_t{1}, kMostTokens))
      ->type_name("N");
  app.add_option("--warm-up", warm_up_, "Tokens of a window that are read but not scored (0)")
      ->check(Between(std::size_t{0}, kMostTokens))
      ->type_name("N");
  AddJsonOption(app, json_);
}

std::optional<std::size_t> EvalFlags::together() const {
  if (together_) return together_;
  const OffloadOptions offload = engine_.options().offload;
  const bool decodes_inexactly = offload.substitution != "exact" || offload.quality != "exact" ||
                                 offload.token_seconds > 0 || offload.low_copies.decode;
  return decodes_inexactly ? std::optional<std::size_t>(1) : std::nullopt;
}

EngineOptions EvalFlags::engine_options() const {
  EngineFlags flags = engine_;
  flags.SubstituteUpTo(static_cast<std::uint32_t>(together().value_or(1)));
  return flags.options();
}

Result<std::unique_ptr<Engine>> EvalFlags::Open(std::optional<TraceScores> trace) const {
  EngineFlags flags = engine_;
  flags.SubstituteUpTo(static_cast<std::uint32_t>(together().value_or(1)));
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          flags.Open(window_.value_or(kWindow), trace));
  // What low copies or substitutes answer depends on what is in memory: unless something is read
  // ahead, the same on every run.
  if (engine->offloaded() != nullptr) engine->offloaded()->set_in_order(true);
  return engine;
}

Result<ScoredText> EvalFlags::ReadText(const Tokenizer& tokenizer) const {
  TROUPE_ASSIGN_OR_RETURN(ScoredText text, text_.Read(tokenizer));
  if (most_tokens_) text.ids.resize(std::min(text.ids.size(), *most_tokens_));
  return text;
}

EvaluationOptions EvalFlags::options(const ScoredText& text, std::size_t room) const {
  return {.window = window_.value_or(std::min(kWindow, room)),
          .together = together(),
          .warm_up = warm_up_,
          .begin = text.begin};
}

}  // namespace troupe
