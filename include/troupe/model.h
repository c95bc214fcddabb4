// Troupe's front door: open a model, start requests, wait for their answers.
//
//     using namespace troupe::literals;
//     auto model = troupe::Model::Open("model.gguf", {.memory = 6_GiB});
//     if (!model.ok()) return Fail(model.status().ToString());
//     auto generation = (*model)->Start({.prompt = "The kernel"});
//     if (!generation.ok()) return Fail(generation.status().ToString());
//     const auto answer = generation->Wait();
//
// Nothing here throws, prints or exits. Errors are Status values (status.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/batch_use.h"
#include "troupe/bytes.h"
#include "troupe/model_options.h"
#include "troupe/plan.h"
#include "troupe/request.h"
#include "troupe/state.h"
#include "troupe/status.h"

namespace troupe {

// A request under way. Destroying it cancels it, and none of its callbacks is called after that.
// Safe to use after its model was closed. All calls but move and destruction may come from any
// thread.
class Generation {
 public:
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;  // destroys what it held
  ~Generation();

  // Waits for the end. May be called again, and gives the same again.
  // A cancelled request has an answer: what was written so far, with FinishReason::kCancelled.
  // kCancelled: the model was closed before. kDataLoss, kUnavailable: weights could not be read.
  // kDeadlineExceeded: its timeout has passed. kInvalidArgument: the model's logits are no numbers.
  // kFailedPrecondition: moved from, or called from a callback before the end, where it would wait
  // for itself.
  Result<Answer> Wait();
  // The same, but no longer than this: nothing if the request is still under way then.
  std::optional<Result<Answer>> WaitFor(std::chrono::nanoseconds longest);

  // Stops the request within one pass. Waits for any callback that is running, unless called from
  // one; after it has returned only on_end is called. Destruction waits
  // for any callback in the same way. Hold no lock that they take. May be called again, also after
  // the end.
  void Cancel();

  bool done() const;  // Wait would not wait; true if moved from

 private:
  friend class Model;
  friend class ModelAccess;  // the program `troupe`'s, not installed
  class Impl;
  explicit Generation(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Sums since the model was opened, and what is under way now.
struct Metrics {
  std::size_t requests_waiting = 0, requests_reading = 0, requests_decoding = 0;
  std::uint64_t requests_finished = 0, requests_cancelled = 0, requests_failed = 0;
  std::uint64_t requests_refused = 0;  // by Start
  std::uint64_t passes = 0, failed_passes = 0;
  std::uint64_t abandoned_passes = 0;  // ended between two layers: all in them was cancelled
  double pass_seconds = 0;
  double rule_seconds = 0;  // between them: which tokens the rules of answers allow
  std::uint64_t prompt_tokens = 0, generated_tokens = 0;
  PassRowCounts pass_rows;  // of passes that did not fail
  SpeculationUse speculation;
  // Passes without drafts, to compare what drafts really save, and by how much what they were
  // thought to have saved was put right.
  std::uint64_t draft_rest_passes = 0;
  double draft_put_right_seconds = 0;
  PrefixCacheUse prefix_cache;
  KvPages kv_pages;
  ExpertUsage experts;
  CardState card;
};

// Called with each piece of an answer, in order. False or an exception cancels, and it is not
// called again. Cancel may come between a token and its piece: the answer's text has both.
using OnPiece = std::function<bool(const Piece& piece)>;
// Called once, after the last piece, with what Wait gives, which does not wait any more: no thread
// has to stand by for an answer. Not called if the handle is destroyed before. It may destroy it.
using OnEnd = std::function<void(const Result<Answer>& answer)>;
// Called with each generated token, before its text, and the logits it was chosen from, which are
// good during the call. kCancelled cancels before that token; another error, and kInternal for an
// exception, ends the request.
using OnLogits = std::function<Status(TokenId token, std::span<const float> logits)>;

// Called after each pass that read a part of the prompt: tokens read so far, of all. An exception
// cancels.
using OnRead = std::function<void(std::size_t read, std::size_t all)>;

// Called with each token of the prompt but the first, in order, and the logits after those before
// it, which are good during the call. All of the prompt is read then, whatever is in the prefix
// cache. An exception cancels.
using OnPrompt = std::function<void(TokenId token, std::span<const float> logits)>;

// What a request calls; any may be absent. They are called on the engine's thread, maybe before
// Start returns, and all requests wait while they run, so they must not block. All are let go after
// the end, with what they hold.
struct Callbacks {
  OnPiece on_piece = {};
  OnEnd on_end = {};
  OnLogits on_logits = {};
  OnRead on_read = {};
  OnPrompt on_prompt = {};
};

// Called while weights are loaded, on the thread that opens. False or an exception stops, and it is
// not called again.
using OnProgress = std::function<bool(Bytes done, Bytes total)>;

// A model that is ready to answer. Opening reads the file and takes all memory it will ever take.
// Thread-safe: requests of all threads share passes, and each gets the bytes it would get alone.
class Model {
 public:
  // What Open would do, without reading a weight. Fails as Open does.
  static Result<Plan> PlanFor(const std::string& path, const ModelOptions& options = {});

  // kNotFound, kPermissionDenied: the file cannot be opened. kInvalidArgument: it is no model, or
  // an option is wrong. kUnimplemented: a family or tensor type that is not known.
  // kResourceExhausted: the budget is too small, and the message says what would do; or the system
  // gives no thread. kDataLoss: the file is damaged. kCancelled: on_progress returned false.
  static Result<std::unique_ptr<Model>> Open(const std::string& path,
                                             const ModelOptions& options = {},
                                             const OnProgress& on_progress = {});

  // Closes, and gives all memory back. From a callback it does not wait: the engine's thread does
  // the rest after the callback, some time after this has returned. A program that ends, or opens
  // the next model in this one's memory, closes from another thread.
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // Does not wait for other requests. kInvalidArgument: the request could never be answered.
  // kResourceExhausted: its prompt is longer than the context (Status::context_full). kUnavailable:
  // the queue is full, or the rules of other requests leave this one's no room; try again after
  // Status::retry_after() seconds. kUnimplemented: a chat in a format that is not known.
  // kFailedPrecondition: the model was closed, or opened without what the request asks for.
  Result<Generation> Start(Request request, Callbacks callbacks = {});

  // Ends all requests with kCancelled after the pass that runs, and waits until that is done and no
  // callback runs any more; from a callback it does not wait. What needs no pass can be asked as
  // before; memory is given back by the destructor. Any number of times, from any thread.
  void Close();

  // The tokens of a text, with the one that begins a text if the model has one (BOS);
  // kInvalidArgument if it is not UTF-8.
  Result<std::vector<TokenId>> Tokenize(std::string_view text) const;
  // The tokens that a request with this prompt would read. Fails as Start would.
  Result<std::vector<TokenId>> PromptTokens(const Prompt& prompt) const;
  // The text of tokens; kInvalidArgument if one is not in the vocabulary.
  Result<std::string> Detokenize(std::span<const TokenId> tokens) const;

  const Plan& plan() const;
  // As of the end of the last pass; requests that came since then are waiting.
  Metrics metrics() const;
  // As it is at the end of the pass under way, for which it waits, but no longer than this; then,
  // and from a callback, as it was known last. Takes the engine some microseconds, and none if
  // nobody asks.
  ModelState state(std::chrono::nanoseconds longest) const;

 private:
  friend class ModelAccess;  // the program `troupe`'s, not installed
  class Impl;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
