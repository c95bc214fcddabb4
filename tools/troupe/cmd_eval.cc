// `troupe eval`: perplexity over a text, and the distance to logits that another run has saved.
#include <cstdio>
#include <optional>
#include <string>

#include "runtime/evaluation.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/eval_low_share.h"
#include "troupe/eval_report.h"
#include "troupe/eval_text.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/run_record.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

constexpr std::size_t kWindow = 512;  // tokens that are scored together

class EvalCommand final : public Command {
 public:
  void AddOptions(CLI::App& app) override {
    engine_.AddTo(app);
    text_.AddTo(app);
    app.add_option("--window", window_, "Tokens scored from an empty cache (512)")
        ->check(CLI::Range(std::size_t{2}, kMostTokens))
        ->type_name("N");
    app.add_option("--together", together_,
                   "Tokens of a window that go through the layers in one pass, at most: 1 as when "
                   "tokens are generated, 3 as a batch of three (all)")
        ->check(CLI::Range(std::size_t{1}, kMostTokens).description(""))
        ->type_name("N");
    app.add_option("--warm-up", warm_up_, "Tokens of a window that are read but not scored (0)")
        ->check(CLI::Range(std::size_t{0}, kMostTokens))
        ->type_name("N");
    app.add_option("--logits", logits_, "Save the logits of every scored token")->type_name("FILE");
    app.add_option("--reference", reference_,
                   "Saved logits to compare with: mean KL, agreement on the likeliest token")
        ->type_name("FILE");
    app.add_option("--find-low-share", most_loss_,
                   "Find the largest SHARE for --low-copy prefill=SHARE whose perplexity is within "
                   "so many percent of exact, by default with every expert read")
        ->check(CLI::Range(0.0, 100.0).description(""))
        ->type_name("PERCENT");
    trace_.AddTo(app);
    AddJsonOption(app, json_);
  }

  Status CheckUsage() const override {
    if (!text_.given() || text_.given_twice()) {
      return InvalidArgument("give one of --text and --ids-file");
    }
    if (most_loss_ && !(logits_.empty() && reference_.empty())) {
      return InvalidArgument("--find-low-share takes no --logits and no --reference");
    }
    return OkStatus();
  }

  Status Run() override {
    if (most_loss_) engine_.AllowLowCopies();
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            engine_.Open(window_.value_or(kWindow), trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(*engine));
    TROUPE_ASSIGN_OR_RETURN(const ScoredText text, text_.Read(engine->tokenizer()));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    const EvaluationOptions options{.window = window_.value_or(std::min(kWindow, session.room())),
                                    .together = together_,
                                    .warm_up = warm_up_,
                                    .begin = text.begin};
    if (most_loss_) {
      return FindLowShare(*engine, session, text, text_.name(), options, *most_loss_ / 100, json_);
    }

    EvaluationHooks hooks;
    std::optional<LogitsWriter> writer;
    if (!logits_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(LogitsWriter created,
                              LogitsWriter::Create(logits_, engine->config().vocabulary));
      writer.emplace(std::move(created));
      hooks.save = &*writer;
    }
    std::optional<LogitsReader> reference;
    if (!reference_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(reference, LogitsReader::Open(reference_));
      hooks.reference = &*reference;
    }
    Result<Evaluation> result = [&] {
      ProgressBar bar("scoring");
      hooks.progress = [&bar](std::size_t done, std::size_t all) {
        bar.Update(Bytes(done), Bytes(all));
      };
      return Evaluate(session, text.ids, options, hooks);
    }();
    if (!result.ok()) return Status(result.status()).WithContext(text_.name());
    if (writer) TROUPE_RETURN_IF_ERROR(writer->Finish());
    TROUPE_RETURN_IF_ERROR(trace_.Finish(recorder.get()));
    if (json_ != "-") {
      Print(*result);
      if (const ExpertUsage usage = engine->expert_usage(); usage.low_copies > 0) {
        fmt::print("not exact       {} of {} asks were answered by low copies\n", usage.low_copies,
                   usage.hits + usage.misses);
      }
    }
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(*engine, options, *result), json_);
  }

 private:
  Json Record(const Engine& engine, const EvaluationOptions& options, const Evaluation& e) const {
    Json record;
    record["model"] = engine.path();
    record["text"] = text_.name();
    record["window"] = options.window;
    record["together"] = options.together.value_or(options.window);
    record["warm_up"] = options.warm_up;
    AddEvaluation(record, e);
    AddUsage(record, engine.expert_usage());
    if (e.comparison) record["reference"] = reference_;
    return record;
  }

  EngineFlags engine_;
  TraceFlags trace_;
  EvalText text_;
  std::string logits_, reference_, json_;
  std::optional<std::size_t> window_, together_;
  std::size_t warm_up_ = 0;
  std::optional<double> most_loss_;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace troupe
