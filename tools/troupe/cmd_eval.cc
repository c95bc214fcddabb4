// `troupe eval`: what a model is worth. Perplexity over a text and the distance to logits that
// another run has saved; tasks, closed loops, sweeps and the share of low copies have files of
// their own (eval_*.h).
#include <cstdio>
#include <optional>
#include <string>

#include "lab/evaluation.h"
#include "troupe/commands.h"
#include "troupe/eval_draft.h"
#include "troupe/eval_flags.h"
#include "troupe/eval_head.h"
#include "troupe/eval_loop.h"
#include "troupe/eval_low_share.h"
#include "troupe/eval_report.h"
#include "troupe/eval_sweep.h"
#include "troupe/eval_tasks.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/run_record.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

class EvalCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    flags_.AddTo(options);
    AddOutputOption(options, "--logits", logits_, "Save the logits of every scored token");
    options.Heading("Scoring");
    options
        .Add("--reference", reference_,
             "Saved logits to compare with: mean KL divergence, agreement on the most likely token")
        .Type("FILE");
    options
        .Add("--find-low-share", most_loss_,
             "Find the largest SHARE for --low-copy prefill=SHARE whose perplexity is within this "
             "many percent of exact, by default with every expert read")
        .Between(0.0, 100.0)
        .Type("PERCENT");
    tasks_.AddTo(options);
    loop_.AddTo(options);
    draft_.AddTo(options);
    head_.AddTo(options);
    sweep_.AddTo(options);
    options.Heading(kOutputHeading);
    trace_.AddTo(options);
  }

  Status CheckUsage() const override {
    const int modes = (most_loss_ ? 1 : 0) + (tasks_.given() ? 1 : 0) + (loop_.given() ? 1 : 0) +
                      (draft_.given() ? 1 : 0) + (head_.given() ? 1 : 0) + (sweep_.given() ? 1 : 0);
    if (modes > 1) {
      return InvalidArgument(
          "give one of --tasks, --closed-loop, --resident-draft, --head-draft, --sweep and "
          "--find-low-share");
    }
    if (tasks_.given() && flags_.text().given()) {
      return InvalidArgument("--tasks takes no --text and no --ids-file");
    }
    if (!tasks_.given() && !flags_.text().given_once()) {
      return InvalidArgument("give one of --text and --ids-file, or --tasks");
    }
    if (modes > 0 && !(logits_.empty() && reference_.empty())) {
      return InvalidArgument("{} takes no --logits and no --reference", ModeName());
    }
    if (trace_.to_standard_output() && !flags_.prints()) {
      return InvalidArgument("--trace - and --json -: standard output is for one of them");
    }
    if (modes > 0 && trace_.given()) return InvalidArgument("{} takes no --trace", ModeName());
    return sweep_.given() ? sweep_.CheckUsage(flags_) : OkStatus();
  }

  Status Run() override {
    if (tasks_.given()) return tasks_.Run(flags_);
    TROUPE_RETURN_IF_ERROR(flags_.LoadText());
    if (loop_.given()) return loop_.Run(flags_);
    if (draft_.given()) return draft_.Run(flags_);
    if (head_.given()) return head_.Run(flags_);
    if (sweep_.given()) return sweep_.Run(flags_);
    if (most_loss_) flags_.engine().AllowLowCopies();
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, flags_.Open(trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(*engine));
    TROUPE_ASSIGN_OR_RETURN(const ScoredText text, flags_.TakeText(engine->tokenizer()));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    const EvaluationOptions options = flags_.options(text, session.room());
    if (most_loss_) {
      return FindLowShare(*engine, session, text, flags_.text().name(), options, *most_loss_ / 100,
                          flags_.json());
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
        bar.UpdateCount(static_cast<double>(done), all);
      };
      return Evaluate(session, text.ids, options, hooks);
    }();
    if (!result.ok()) return Status(result.status()).WithContext(flags_.text().name());
    if (writer) TROUPE_RETURN_IF_ERROR(writer->Finish());
    TROUPE_RETURN_IF_ERROR(trace_.Finish(recorder.get()));
    if (flags_.prints() && !trace_.to_standard_output()) {
      Print(*result);
      PrintNotExact(engine->expert_usage());
    }
    if (flags_.json().empty()) return OkStatus();
    return WriteJson(Record(*engine, options, *result), flags_.json());
  }

 private:
  const char* ModeName() const {
    if (tasks_.given()) return "--tasks";
    if (loop_.given()) return "--closed-loop";
    if (draft_.given()) return "--resident-draft";
    if (head_.given()) return "--head-draft";
    return sweep_.given() ? "--sweep" : "--find-low-share";
  }

  static void PrintNotExact(const ExpertUsage& usage) {
    if (usage.grouped > 0) {
      fmt::print("not exact       {} slots chosen by a group gate\n", usage.grouped);
    }
    if (usage.NotExact() == 0) return;
    fmt::print(
        "not exact       {} asks of {} answered by low copies, {} slots by other experts, {} by "
        "none\n",
        usage.low_copies, usage.hits + usage.misses, usage.substituted, usage.dropped);
  }

  Json Record(const Engine& engine, const EvaluationOptions& options, const Evaluation& e) const {
    Json record;
    record["model"] = engine.path();
    record["text"] = flags_.text().name();
    record["window"] = options.window;
    record["together"] = options.together.value_or(options.window);
    record["warm_up"] = options.warm_up;
    const ChainReport chain = ChainOf(engine);
    record["substitution"] = chain.chain;
    AddEvaluation(record, e);
    record["substitution_links"] = LinkCounts(chain);
    AddUsage(record, engine.expert_usage());
    AddGate(record, engine);
    if (e.comparison) record["reference"] = reference_;
    return record;
  }

  EvalFlags flags_;
  EvalTasks tasks_;
  EvalLoop loop_;
  EvalDraft draft_;
  EvalHead head_;
  EvalSweep sweep_;
  TraceFlags trace_;
  std::string logits_, reference_;
  std::optional<double> most_loss_;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace troupe
