// What all that `troupe eval` does has in common: the engine, the text, how it goes through the
// layers, where the record goes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lab/evaluation.h"
#include "troupe/engine_flags.h"
#include "troupe/eval_text.h"

namespace troupe {

class EvalFlags {
 public:
  void AddTo(Options& options);

  // Reads the text, as far as --tokens wants it, so that its memory is in the plan. Before Open.
  Status LoadText();
  // Opens the model; with a chain of substitution it may answer passes as large as will be fed.
  Result<std::unique_ptr<Engine>> Open(std::optional<TraceScores> trace = std::nullopt) const;
  EngineOptions engine_options() const;

  // At most as many tokens as --tokens asks for. Once.
  Result<ScoredText> TakeText(const Tokenizer& tokenizer);
  EvaluationOptions options(const ScoredText& text, std::size_t room) const;
  // Absent: all of a window. One where answers of decode may be inexact, as when tokens
  // are generated.
  std::optional<std::size_t> together() const;

  EngineFlags& engine() { return engine_; }
  const std::string& model() const { return engine_.model(); }
  const EvalText& text() const { return text_; }
  const std::string& json() const { return json_; }
  bool prints() const { return json_ != "-"; }

 private:
  EngineFlags Flags() const;

  EngineFlags engine_;
  EvalText text_;
  std::optional<std::size_t> window_, together_, most_tokens_;
  std::size_t warm_up_ = 0;
  std::string json_;
};

}  // namespace troupe
