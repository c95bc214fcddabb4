// The door beside the front door, for the program `troupe` alone and not installed: a Model of an
// engine that was opened with options the public ones do not have, and a look at that engine.
#pragma once

#include <troupe/model.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/callback_gate.h"
#include "base/status.h"
#include "runtime/batch_loop.h"
#include "runtime/engine.h"
#include "runtime/part_keys.h"
#include "runtime/pass_gaps.h"
#include "runtime/prefix_file.h"
#include "runtime/ticket.h"

namespace troupe {

class ModelAccess {
 public:
  // Of the options only those of requests and passes count: the engine is open. kResourceExhausted:
  // the system gives no thread.
  static Result<std::unique_ptr<Model>> Of(std::unique_ptr<Engine> engine,
                                           const ModelOptions& options = {});

  // What requests have left in the prefix cache, from a file and into it (runtime/kept_prefixes.h):
  // before the first request, and after Close.
  static Result<PrefixFileReport> LoadPrefixes(Model& model, const std::string& path,
                                               const MayGoOn& go_on);
  static Status SavePrefixes(Model& model, const std::string& path, const MayGoOn& go_on);

  // The queue and the time of a pass, of these options, for the requests to come.
  static void SetLimits(Model& model, const ModelOptions& options);

  // Has the engine's thread do something short between two passes. Without effect once the model is
  // closed.
  static void Between(Model& model, std::function<void()> errand);
  // How much passes of requests that are started from now on tell of what passes take
  // (RowSpeedMeter::set_new_share).
  static void WeighPasses(Model& model, double share);
  // As Between, for who runs passes there. The model must outlive what is called by it.
  static PassGaps GapsOf(Model& model);

  // Whether requests find what others have read of their texts.
  static bool KeepsPrefixes(const Model& model);
  // As EngineRunner::KeepPrefix. REQUIRES: it is called by the engine's thread between two passes.
  static std::size_t KeepPrefix(Model& model, TokenIds tokens, std::string_view salt,
                                std::size_t most, const FillSequence& fill);

  // Has the request's rule ready as long as what it gives is held, so that Start cannot fail by it;
  // null without a rule. Fails as Start would.
  static Result<std::shared_ptr<const void>> HoldRule(Model& model, const Request& request);

  // As Model::Start, of a request that somebody offers drafts for while it is being answered.
  static Result<Generation> Start(Model& model, Request request, Callbacks callbacks,
                                  std::shared_ptr<OfferedDraft> offered);

  // A request as the engine sees it, with its prompt as tokens. Fails as Start would, as far as it
  // can be seen without an engine; rules of answers are not looked at.
  static Result<BatchRequest> Prepare(const Model& model, Request request);
  // Whether the model could answer it alone.
  static Status Check(const Model& model, const BatchRequest& request);
  // The handle of a request that somebody else than a model answers: cancels by the ticket, and
  // calls through the gate, which may be null.
  static Generation Handle(std::shared_ptr<Ticket> ticket, std::shared_ptr<CallbackGate> gate);
  // As of the last pass.
  static BatchCounters CountersOf(const Model& model);

  // Runs passes on another thread while requests are under way: to be changed only while none is.
  static Engine& EngineOf(Model& model);
};

}  // namespace troupe
