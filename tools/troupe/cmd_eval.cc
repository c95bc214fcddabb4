// `troupe eval`: perplexity over a text, and the distance to logits that another run has saved.
#include <optional>
#include <string>

#include "runtime/evaluation.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/trace_flags.h"

namespace troupe {
namespace {

constexpr std::size_t kWindow = 512;  // tokens that are scored together

class EvalCommand final : public Command {
 public:
  void AddOptions(CLI::App& app) override {
    engine_.AddTo(app);
    app.add_option("--text", text_, "Text file to score (- for standard input)")->type_name("FILE");
    app.add_option("--ids-file", ids_file_, "The same as token ids, which are scored as they are")
        ->type_name("FILE");
    app.add_option("--window", window_, "Tokens scored together, from an empty cache (512)")
        ->check(CLI::Range(std::size_t{2}, kMostTokens))
        ->type_name("N");
    app.add_option("--warm-up", warm_up_, "Tokens of a window that are read but not scored (0)")
        ->check(CLI::Range(std::size_t{0}, kMostTokens))
        ->type_name("N");
    app.add_option("--logits", logits_, "Save the logits of every scored token")->type_name("FILE");
    app.add_option("--reference", reference_,
                   "Saved logits to compare with: mean KL, agreement on the likeliest token")
        ->type_name("FILE");
    trace_.AddTo(app);
    AddJsonOption(app, json_);
  }

  Status CheckUsage() const override {
    if (text_.empty() == ids_file_.empty()) {
      return InvalidArgument("give one of --text and --ids-file");
    }
    return OkStatus();
  }

  Status Run() override {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            engine_.Open(window_.value_or(kWindow), trace_.scores()));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<TraceRecorder> recorder, trace_.Begin(*engine));
    EvaluationOptions options{.warm_up = warm_up_, .begin = std::nullopt};
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, Tokens(engine->tokenizer(), options));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    options.window = window_.value_or(std::min(kWindow, session.room()));

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
      return Evaluate(session, ids, options, hooks);
    }();
    if (!result.ok()) {
      return Status(result.status()).WithContext(text_.empty() ? ids_file_ : text_);
    }
    if (writer) TROUPE_RETURN_IF_ERROR(writer->Finish());
    TROUPE_RETURN_IF_ERROR(trace_.Finish(recorder.get()));
    if (json_ != "-") Print(*result);
    if (json_.empty()) return OkStatus();
    return WriteJson(Record(*engine, options, *result), json_);
  }

 private:
  Result<std::vector<TokenId>> Tokens(const Tokenizer& tokenizer,
                                      EvaluationOptions& options) const {
    if (!ids_file_.empty()) {
      TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(ids_file_));
      Result<std::vector<TokenId>> ids = ParseTokenIds(text);
      if (!ids.ok()) return Status(ids.status()).WithContext(ids_file_);
      return ids;
    }
    TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_));
    if (tokenizer.vocab().add_bos) options.begin = tokenizer.vocab().bos;
    Result<std::vector<TokenId>> ids = tokenizer.Encode(text, {.add_special = false});
    if (!ids.ok()) return Status(ids.status()).WithContext(text_);
    return ids;
  }

  static void Print(const Evaluation& e) {
    fmt::print("tokens scored   {}\n", e.tokens);
    fmt::print("nats per token  {:.5f} ± {:.5f}\n", e.nll.mean, e.nll.error);
    fmt::print("perplexity      {:.4f}\n", e.Perplexity());
    if (!e.comparison) return;
    const Comparison& c = *e.comparison;
    fmt::print("mean KL         {:.6g} ± {:.2g} nats (worst {:.4g})\n", c.kl.mean, c.kl.error,
               c.worst_kl);
    fmt::print("same top token  {:.3f} %\n", 100 * c.top1_agreement);
    fmt::print("true token      {:+.6f} probability on average\n", c.mean_probability_change);
  }

  Json Record(const Engine& engine, const EvaluationOptions& options, const Evaluation& e) const {
    Json record;
    record["model"] = engine.path();
    record["text"] = text_.empty() ? ids_file_ : text_;
    record["window"] = options.window;
    record["warm_up"] = options.warm_up;
    record["tokens"] = e.tokens;
    record["nll"] = e.nll.mean;
    record["nll_error"] = e.nll.error;
    record["perplexity"] = e.Perplexity();
    if (e.comparison) {
      record["reference"] = reference_;
      record["mean_kl"] = e.comparison->kl.mean;
      record["mean_kl_error"] = e.comparison->kl.error;
      record["worst_kl"] = e.comparison->worst_kl;
      record["top1_agreement"] = e.comparison->top1_agreement;
      record["mean_probability_change"] = e.comparison->mean_probability_change;
    }
    return record;
  }

  EngineFlags engine_;
  TraceFlags trace_;
  std::string text_, ids_file_, logits_, reference_, json_;
  std::optional<std::size_t> window_;
  std::size_t warm_up_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace troupe
