// The options of every command that opens a model to run it, and the opening itself.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "runtime/engine.h"
#include "troupe/option_table.h"

namespace troupe {

class EngineFlags {
 public:
  // Optional: it may be told otherwise, and the caller checks that it is.
  enum class ModelArgument { kRequired, kOptional };
  void AddTo(Options& options, ModelArgument model = ModelArgument::kRequired);

  // Opens the model, with a progress bar while it loads. What the plan had to give up is said. A
  // budget does not shrink the context below `least_context`: what is to be done needs it.
  // kCancelled: `go_on`, asked from time to time while it loads, said no.
  Result<std::unique_ptr<Engine>> Open(std::size_t least_context = 0,
                                       std::optional<TraceScores> trace = std::nullopt,
                                       const std::function<bool()>& go_on = {}) const;

  // For commands that generate text, or plan for it.
  void AddSpeculation(Options& options);
  // For commands that measure it.
  void GuessByHead() { drafters_ = DraftChoice{.heads = true}; }
  // For commands that chat.
  void AddChatTemplate(Options& options);
  // Of the files that options have named, as they were when they were read. Open looks, too.
  const Status& file_status() const { return chat_template_status_; }

  // What a search for the share of low copies needs: that they can be read, and by default so few
  // slots that every one that may be read is.
  void AllowLowCopies();
  // Passes of at most `tokens` count as decode: a chain of substitution has a say in them.
  void SubstituteUpTo(std::uint32_t tokens) { offload_.substitution_tokens = tokens; }
  // The same answers on every run, also where they are not exact.
  void HandOutInOrder() { offload_.in_order = true; }
  // What may be lost is for guesses that others check (split/draft_desk.h): missing experts of
  // theirs are answered by nothing, so that guessing reads nothing, unless options say otherwise.
  void LoseForDraftsAlone() {
    if (offload_.exact()) offload_.lossiness = Chain{"drop"};
    offload_.lossy_guesses_alone = true;
  }
  // Nor for anything else, whatever was allowed.
  void LoseNothing();
  // How many sequences the engine holds at once; 1 unless a command says more. Where memory is
  // short they share what one may have alone, but can all be as long as that.
  void HoldSequences(std::uint32_t sequences, std::uint32_t all_as_long_as = 0) {
    sequences_ = sequences;
    sequence_length_ = all_as_long_as;
  }
  // Engine::fingerprint will be asked for.
  void TakeFingerprint() { fingerprint_ = true; }
  // Of one text at a time: an unasked context is as long as that becomes.
  void ReadsOneText(std::function<Result<TextLength>(const Tokenizer&, std::uint32_t most)> text) {
    text_ = std::move(text);
  }
  // Memory of a model's plan that is left to the command.
  void Serves(std::function<ServingMemory(const ModelConfig&, std::uint32_t context)> serving) {
    serving_ = std::move(serving);
  }
  void TakesAnswersOfPeersIn(RowForm form) { offload_.peer_answers = form; }
  void TakesExpertsForPeers(std::uint32_t experts) { experts_for_peers_ = experts; }
  void TakesBeside(std::function<Bytes(const ModelConfig&)> beside) { beside_ = std::move(beside); }

  // Whether somebody said how much of the model is to be in memory.
  bool says_memory() const { return memory_.has_value() || offload_.slots.has_value(); }
  bool locks() const { return locks_; }  // what is in memory
  // Unless an option says otherwise, the cache begins with what a profile says is used most.
  void FillsCache() { fills_ = FillCache::kIfKnown; }
  void LimitSlots(std::uint32_t slots) { offload_.slots = slots; }

  EngineOptions options() const;
  const std::string& model() const { return model_; }

 private:
  void AddMemoryOptions(Options& options);
  void AddCardOptions(Options& options);
  void AddPredictionOptions(Options& options);
  void AddLossyOptions(Options& options);

  std::string model_;
  std::size_t threads_ = 0;    // 0: all
  std::uint32_t context_ = 0;  // 0: the plan decides
  std::optional<Bytes> memory_;
  bool kv_q8_0_ = false;
  std::uint32_t chunk_ = 512;
  std::uint32_t sequences_ = 1, sequence_length_ = 0;
  bool fingerprint_ = false;
  OffloadOptions offload_;
  FillCache fills_ = FillCache::kNo;  // without --fill
  std::optional<FillCache> asked_to_fill_;
  CardOptions card_;
  DraftChoice drafters_;  // none, unless there is an option
  std::string draft_;     // path; empty: no model guesses
  std::string chat_template_;
  Status chat_template_status_;  // of its file
  bool locks_ = false;
  std::function<Result<TextLength>(const Tokenizer&, std::uint32_t most)> text_;
  std::function<Bytes(const ModelConfig&)> beside_;
  std::function<ServingMemory(const ModelConfig&, std::uint32_t context)> serving_;
  std::uint32_t experts_for_peers_ = 0;
};

}  // namespace troupe
