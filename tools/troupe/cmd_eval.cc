// `troupe eval`: perplexity over a text, and the distance to logits that another run has saved.
#include <cstdio>
#include <optional>
#include <string>

#include "runtime/evaluation.h"
#include "runtime/low_share_search.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
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
    app.add_option("--text", text_, "Text file to score (- for standard input)")->type_name("FILE");
    app.add_option("--ids-file", ids_file_, "The same as token ids, which are scored as they are")
        ->type_name("FILE");
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
    if (text_.empty() == ids_file_.empty()) {
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
    EvaluationOptions options{.together = together_, .warm_up = warm_up_, .begin = std::nullopt};
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids, Tokens(engine->tokenizer(), options));
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    options.window = window_.value_or(std::min(kWindow, session.room()));
    if (most_loss_) return FindShare(*engine, session, ids, options);

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
  Status FindShare(Engine& engine, Session& session, std::span<const TokenId> ids,
                   const EvaluationOptions& options) const {
    if (engine.offloaded() == nullptr) {
      return InvalidArgument("{}: every expert is in memory; --slots makes them be read",
                             engine.path());
    }
    constexpr int kSteps = 6;
    const bool table = json_ != "-";
    double exact = 0;
    if (table) fmt::print("share   perplexity  loss\n");
    const auto perplexity = [&](double share) -> Result<double> {
      engine.offloaded()->set_low_copies({.prefill_share = share});
      TROUPE_ASSIGN_OR_RETURN(const Evaluation found, Evaluate(session, ids, options));
      if (share == 0) exact = found.Perplexity();
      if (table) {
        fmt::print("{:<6.4g}  {:<10.4f}  {:+.3f} %\n", share, found.Perplexity(),
                   100 * (found.Perplexity() / exact - 1));
        std::fflush(stdout);
      }
      return found.Perplexity();
    };
    TROUPE_ASSIGN_OR_RETURN(const ShareSearch search,
                            FindLowShare(perplexity, *most_loss_ / 100, kSteps));
    if (table) {
      fmt::print("--low-copy prefill={:.4g} loses {:.3f} % (at most {:g} % asked for)\n",
                 search.best.share, 100 * search.best.loss, *most_loss_);
    }
    if (json_.empty()) return OkStatus();
    Json trials = Json::array();
    for (const ShareTrial& trial : search.trials) {
      trials.push_back(
          {{"share", trial.share}, {"perplexity", trial.perplexity}, {"loss", trial.loss}});
    }
    return WriteJson({{"model", engine.path()},
                      {"text", text_.empty() ? ids_file_ : text_},
                      {"window", options.window},
                      {"most_loss", *most_loss_ / 100},
                      {"low_share", search.best.share},
                      {"loss", search.best.loss},
                      {"trials", std::move(trials)}},
                     json_);
  }

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
    record["together"] = options.together.value_or(options.window);
    record["warm_up"] = options.warm_up;
    record["tokens"] = e.tokens;
    record["nll"] = e.nll.mean;
    record["nll_error"] = e.nll.error;
    record["perplexity"] = e.Perplexity();
    AddUsage(record, engine.expert_usage());
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
  std::optional<std::size_t> window_, together_;
  std::size_t warm_up_ = 0;
  std::optional<double> most_loss_;
};

}  // namespace

std::unique_ptr<Command> MakeEvalCommand() { return std::make_unique<EvalCommand>(); }

}  // namespace troupe
