// The front door (troupe/model.h): an engine, a batcher that owns it, and the handles to requests.
#include <troupe/model.h>

#include <atomic>
#include <utility>

#include "api/callbacks.h"
#include "api/conversions.h"
#include "base/clock.h"
#include "runtime/batcher.h"
#include "runtime/engine.h"
#include "runtime/engine_runner.h"
#include "runtime/plan_model.h"

namespace troupe {
namespace {

std::string ChainOf(const Engine& engine) {
  const std::optional<OffloadReport> offload = engine.offload_report();
  return offload ? offload->substitution.chain : "exact";
}

// An exception of a stranger's must not unwind through work that other threads share.
ByteProgress Guarded(const OnProgress& on_progress) {
  if (!on_progress) return {};
  return [&on_progress](Bytes done, Bytes total) {
    try {
      return on_progress(done, total);
    } catch (...) {
      return false;
    }
  };
}

void Connect(const std::shared_ptr<Callbacks>& callbacks, BatchRequest& request) {
  request.sinks = {.on_text = [callbacks](std::string_view text) { return callbacks->Show(text); },
                   .on_logits =
                       [callbacks](TokenId, std::span<const float>) {
                         callbacks->CountToken();
                         return OkStatus();
                       }};
  request.on_end = [callbacks](const Result<GenerateResult>& answer) { callbacks->End(answer); };
}

}  // namespace

class Generation::Impl {
 public:
  Impl(std::shared_ptr<Ticket> held, std::shared_ptr<Callbacks> told)
      : ticket(std::move(held)), callbacks(std::move(told)) {}
  ~Impl() {
    ticket->Cancel();
    if (callbacks != nullptr) callbacks->StopAll();
  }

  void Cancel() {
    ticket->Cancel();
    if (callbacks != nullptr) callbacks->StopPieces();
  }

  const std::shared_ptr<Ticket> ticket;
  const std::shared_ptr<Callbacks> callbacks;  // null if there are none
};

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

Result<Answer> Generation::Wait() {
  if (impl_ == nullptr) {
    return Error(Code::kFailedPrecondition, "this generation was moved from");
  }
  TROUPE_ASSIGN_OR_RETURN(GenerateResult result, impl_->ticket->Wait());
  return ToAnswer(std::move(result));
}

std::optional<Result<Answer>> Generation::WaitFor(std::chrono::nanoseconds longest) {
  if (impl_ == nullptr) return Wait();
  std::optional<Result<GenerateResult>> result = impl_->ticket->WaitFor(longest.count());
  if (!result) return std::nullopt;
  if (!result->ok()) return result->status();
  return ToAnswer(std::move(*result).value());
}

void Generation::Cancel() {
  if (impl_ != nullptr) impl_->Cancel();
}

bool Generation::done() const { return impl_ == nullptr || impl_->ticket->done(); }

class Model::Impl {
 public:
  static Result<std::unique_ptr<Impl>> Open(const std::string& path, const ModelOptions& options,
                                            const OnProgress& on_progress) {
    TROUPE_ASSIGN_OR_RETURN(const EngineOptions engine_options, ToEngineOptions(options));
    TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                            Engine::Open(path, engine_options, Guarded(on_progress)));
    auto impl = std::make_unique<Impl>(std::move(engine), options);
    TROUPE_ASSIGN_OR_RETURN(impl->batcher,
                            Batcher::Create(impl->runner_, impl->engine->tokenizer(), impl->clock,
                                            ToBatcherOptions(options, impl->plan.pass_rows)));
    return impl;
  }

  Impl(std::unique_ptr<Engine> opened, const ModelOptions& options)
      : engine(std::move(opened)),
        plan(ToPlan(engine->plan(), options, ChainOf(*engine))),
        runner_(*engine) {}

  Result<std::shared_ptr<Ticket>> Start(Request request,
                                        const std::shared_ptr<Callbacks>& callbacks) {
    TROUPE_ASSIGN_OR_RETURN(BatchRequest batch,
                            ToBatchRequest(std::move(request), engine->tokenizer(),
                                           engine->chat_format(), clock.Now()));
    if (callbacks != nullptr) Connect(callbacks, batch);
    return batcher->Submit(std::move(batch));
  }

  const MonotonicClock clock;
  const std::unique_ptr<Engine> engine;
  const Plan plan;
  std::atomic<std::uint64_t> refused{0};

 private:
  EngineRunner runner_;

 public:
  std::unique_ptr<Batcher> batcher;  // last: its thread uses the others
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// Called from a callback, or by the death of one that held the last reference, it cannot wait: the
// engine's thread would wait for itself.
Model::~Model() {
  Batcher& batcher = *impl_->batcher;
  if (batcher.OnEngineThread()) batcher.CloseLater(std::move(impl_));
}

void Model::Close() { impl_->batcher->Close(); }

Result<Plan> Model::PlanFor(const std::string& path, const ModelOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(const EngineOptions engine_options, ToEngineOptions(options));
  TROUPE_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(path, engine_options));
  return ToPlan(planned.plan, options,
                planned.plan.memory.all_resident ? "exact" : ToString(planned.substitution));
}

Result<std::unique_ptr<Model>> Model::Open(const std::string& path, const ModelOptions& options,
                                           const OnProgress& on_progress) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Open(path, options, on_progress));
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

Result<Generation> Model::Start(Request request, OnPiece on_piece, OnEnd on_end) {
  std::shared_ptr<Callbacks> callbacks;
  if (on_piece || on_end) {
    callbacks = std::make_shared<Callbacks>(std::move(on_piece), std::move(on_end));
  }
  Result<std::shared_ptr<Ticket>> ticket = impl_->Start(std::move(request), callbacks);
  if (!ticket.ok()) {
    ++impl_->refused;
    return ticket.status();
  }
  return Generation(
      std::make_unique<Generation::Impl>(std::move(ticket).value(), std::move(callbacks)));
}

Result<std::vector<TokenId>> Model::Tokenize(std::string_view text) const {
  return impl_->engine->tokenizer().Encode(text);
}

Result<std::string> Model::Detokenize(std::span<const TokenId> tokens) const {
  return impl_->engine->tokenizer().Decode(tokens);
}

const Plan& Model::plan() const { return impl_->plan; }

Metrics Model::metrics() const {
  Metrics metrics = ToMetrics(impl_->batcher->counters());
  metrics.requests_refused = impl_->refused;
  return metrics;
}

}  // namespace troupe
