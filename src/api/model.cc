// The front door (troupe/model.h): an engine, a batcher that owns it, and the handles to requests.
#include <troupe/model.h>

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "api/answer_rules.h"
#include "api/callback_gate.h"
#include "api/conversions.h"
#include "api/model_access.h"
#include "base/check.h"
#include "base/clock.h"
#include "runtime/batcher.h"
#include "runtime/engine.h"
#include "runtime/engine_runner.h"
#include "runtime/plan_model.h"

namespace troupe {
namespace {

// What may be lost, in parts; "exact" if there are none.
std::string Joined(const std::vector<std::string>& parts) {
  return parts.empty() ? "exact" : fmt::format("{}", fmt::join(parts, "; "));
}

// By the chain in force, by peers that round, and by a group gate.
std::string LossinessOf(const Engine& engine) {
  std::vector<std::string> parts;
  if (const std::optional<OffloadReport> offload = engine.offload_report()) {
    if (!offload->substitution.exact()) parts.push_back(offload->substitution.chain);
    const RowForm answers = engine.offload_options().peer_answers;
    if (answers != RowForm::kFloat) parts.push_back(fmt::format("peers in {}", ToString(answers)));
  }
  if (engine.routes_by_groups()) {
    parts.push_back(fmt::format("gate {}", ToString(engine.group_router()->choice())));
  }
  return Joined(parts);
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

void Connect(const std::shared_ptr<CallbackGate>& gate, BatchRequest& request) {
  request.sinks = {
      .on_text = [gate](std::string_view text) { return gate->Show(text); },
      .on_logits = [gate](TokenId token,
                          std::span<const float> logits) { return gate->Choose(token, logits); },
      .on_read = [gate](std::size_t read, std::size_t all) { return gate->Read(read, all); }};
  if (gate->shows_prompt()) {
    request.on_prompt = [gate](TokenId token, std::span<const float> logits) {
      gate->ShowPrompt(token, logits);
    };
  }
  request.on_end = [gate](const Result<Answer>& answer) { gate->End(answer); };
}

}  // namespace

class Generation::Impl {
 public:
  Impl(std::shared_ptr<Ticket> held, std::shared_ptr<CallbackGate> callbacks)
      : ticket(std::move(held)), gate(std::move(callbacks)) {}
  ~Impl() {
    ticket->Cancel();
    if (gate != nullptr) gate->StopAll();
  }

  void Cancel() {
    ticket->Cancel();
    if (gate != nullptr) gate->StopPieces();
  }

  const std::shared_ptr<Ticket> ticket;
  const std::shared_ptr<CallbackGate> gate;  // null if there are no callbacks
};

Generation::Generation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generation::Generation(Generation&&) noexcept = default;
Generation& Generation::operator=(Generation&&) noexcept = default;
Generation::~Generation() = default;

Result<Answer> Generation::Wait() {
  if (impl_ == nullptr) {
    return Error(Code::kFailedPrecondition, "this generation was moved from");
  }
  return impl_->ticket->Wait();
}

std::optional<Result<Answer>> Generation::WaitFor(std::chrono::nanoseconds longest) {
  if (impl_ == nullptr) return Wait();
  return impl_->ticket->WaitFor(longest.count());
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
    return Of(std::move(engine), options);
  }

  static Result<std::unique_ptr<Impl>> Of(std::unique_ptr<Engine> opened,
                                          const ModelOptions& options) {
    auto impl = std::make_unique<Impl>(std::move(opened), options);
    if (options.answer_rules) {
      const Result<ChatPrompts>& chat = impl->engine->chat();
      impl->rules = std::make_unique<AnswerRules>(
          impl->engine->tokenizer(), chat.ok() ? chat->marks() : std::span<const TokenId>());
    }
    BatcherOptions batching = ToBatcherOptions(options, impl->plan.pass_rows);
    batching.drafters = impl->engine->plan().drafters;
    TROUPE_ASSIGN_OR_RETURN(impl->batcher, Batcher::Create(impl->runner, impl->engine->tokenizer(),
                                                           impl->clock, batching));
    return impl;
  }

  Impl(std::unique_ptr<Engine> opened, const ModelOptions& options)
      : engine(std::move(opened)),
        plan(ToPlan(engine->plan(), LossinessOf(*engine))),
        runner(*engine, options.prefix_cache) {}

  Result<std::shared_ptr<Ticket>> Start(Request request, const std::shared_ptr<CallbackGate>& gate,
                                        std::shared_ptr<OfferedDraft> offered) {
    TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<TokenConstraint> constraint, ConstraintOf(request));
    request.exact = AnswersExactly(request, engine->offload_options().lossiness);
    TROUPE_ASSIGN_OR_RETURN(
        BatchRequest batch,
        ToBatchRequest(std::move(request), engine->tokenizer(), engine->chat(), clock.Now()));
    batch.options.constraint = std::move(constraint);
    batch.options.offered = std::move(offered);
    if (gate != nullptr) {
      gate->CountBegun(batch.options.begun.size());
      Connect(gate, batch);
    }
    return batcher->Submit(std::move(batch));
  }

  // Null: it has no rule.
  Result<std::shared_ptr<TokenConstraint>> ConstraintOf(const Request& request) {
    if (!request.rule) return std::shared_ptr<TokenConstraint>();
    if (rules == nullptr) {
      return Error(Code::kFailedPrecondition,
                   "a rule for the answer, and the model was opened without answer_rules");
    }
    return rules->For(*request.rule, request.show_marks);
  }

  const MonotonicClock clock;
  const std::unique_ptr<Engine> engine;
  const Plan plan;
  std::atomic<std::uint64_t> refused{0};
  std::unique_ptr<AnswerRules> rules;  // null: requests have none

  EngineRunner runner;
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
  return ToPlan(planned.plan,
                planned.plan.memory.all_resident ? "exact" : ToString(planned.substitution));
}

Result<std::unique_ptr<Model>> Model::Open(const std::string& path, const ModelOptions& options,
                                           const OnProgress& on_progress) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::Open(path, options, on_progress));
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

Result<Generation> Model::Start(Request request, Callbacks callbacks) {
  return ModelAccess::Start(*this, std::move(request), std::move(callbacks), nullptr);
}

Result<Generation> ModelAccess::Start(Model& model, Request request, Callbacks callbacks,
                                      std::shared_ptr<OfferedDraft> offered) {
  std::shared_ptr<CallbackGate> gate;
  if (callbacks.on_piece || callbacks.on_end || callbacks.on_logits || callbacks.on_read ||
      callbacks.on_prompt) {
    gate = std::make_shared<CallbackGate>(std::move(callbacks));
  }
  Result<std::shared_ptr<Ticket>> ticket =
      model.impl_->Start(std::move(request), gate, std::move(offered));
  if (!ticket.ok()) {
    ++model.impl_->refused;
    return ticket.status();
  }
  return Generation(std::make_unique<Generation::Impl>(std::move(ticket).value(), std::move(gate)));
}

Result<std::vector<TokenId>> Model::Tokenize(std::string_view text) const {
  return impl_->engine->tokenizer().Encode(text);
}

Result<std::vector<TokenId>> Model::PromptTokens(const Prompt& prompt) const {
  return EncodePrompt(prompt, impl_->engine->tokenizer(), impl_->engine->chat());
}

Result<std::string> Model::Detokenize(std::span<const TokenId> tokens) const {
  return impl_->engine->tokenizer().Decode(tokens);
}

Result<std::unique_ptr<Model>> ModelAccess::Of(std::unique_ptr<Engine> engine,
                                               const ModelOptions& options) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<Model::Impl> impl,
                          Model::Impl::Of(std::move(engine), options));
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

void ModelAccess::SetLimits(Model& model, const ModelOptions& options) {
  const BatcherOptions limits = ToBatcherOptions(options, model.impl_->plan.pass_rows);
  model.impl_->batcher->SetLimits(limits.queue, limits.limits.target_seconds);
}

Result<PrefixFileReport> ModelAccess::LoadPrefixes(Model& model, const std::string& path,
                                                   const MayGoOn& go_on) {
  return model.impl_->runner.LoadPrefixes(path, go_on);
}

Status ModelAccess::SavePrefixes(Model& model, const std::string& path, const MayGoOn& go_on) {
  return model.impl_->runner.SavePrefixes(path, go_on);
}

void ModelAccess::Between(Model& model, std::function<void()> errand) {
  model.impl_->batcher->Between(std::move(errand));
}

void ModelAccess::WeighPasses(Model& model, double share) {
  model.impl_->batcher->WeighPasses(share);
}

bool ModelAccess::KeepsPrefixes(const Model& model) {
  return model.impl_->runner.limits().cache_page > 0;
}

std::size_t ModelAccess::KeepPrefix(Model& model, TokenIds tokens, std::string_view salt,
                                    std::size_t most, const FillSequence& fill) {
  TROUPE_CHECK(model.impl_->batcher->OnEngineThread());
  return model.impl_->runner.KeepPrefix(tokens, salt, most, fill);
}

Result<std::shared_ptr<const void>> ModelAccess::HoldRule(Model& model, const Request& request) {
  TROUPE_ASSIGN_OR_RETURN(std::shared_ptr<const void> rule, model.impl_->ConstraintOf(request));
  return rule;
}

PassGaps ModelAccess::GapsOf(Model& model) {
  Batcher& batcher = *model.impl_->batcher;
  return {
      .between = [&batcher](std::function<void()> errand) { batcher.Between(std::move(errand)); },
      .rows = [&batcher](const RowSeconds& seconds,
                         std::uint32_t most) { return batcher.RowsBetween(seconds, most); }};
}

Result<BatchRequest> ModelAccess::Prepare(const Model& model, Request request) {
  const Model::Impl& impl = *model.impl_;
  return ToBatchRequest(std::move(request), impl.engine->tokenizer(), impl.engine->chat(),
                        impl.clock.Now());
}

Status ModelAccess::Check(const Model& model, const BatchRequest& request) {
  return model.impl_->batcher->Check(request);
}

Generation ModelAccess::Handle(std::shared_ptr<Ticket> ticket, std::shared_ptr<CallbackGate> gate) {
  return Generation(std::make_unique<Generation::Impl>(std::move(ticket), std::move(gate)));
}

BatchCounters ModelAccess::CountersOf(const Model& model) {
  return model.impl_->batcher->counters();
}

Engine& ModelAccess::EngineOf(Model& model) { return *model.impl_->engine; }

const Plan& Model::plan() const { return impl_->plan; }

Metrics Model::metrics() const {
  Metrics metrics = ToMetrics(impl_->batcher->counters());
  metrics.requests_refused = impl_->refused;
  return metrics;
}

ModelState Model::state(std::chrono::nanoseconds longest) const {
  return *impl_->batcher->State(longest.count());
}

}  // namespace troupe
