// `troupe replay`: what caches of every policy and size would have made of a recorded trace.
#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/available_cpus.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "expert/prefetch/worth_prefetch.h"
#include "io/text_file.h"
#include "runtime/score_tables_file.h"
#include "sim/replay/replay.h"
#include "troupe/commands.h"
#include "troupe/json_record.h"
#include "troupe/options.h"
#include "troupe/output_path.h"
#include "troupe/plot_file.h"
#include "troupe/progress.h"
#include "troupe/remark.h"
#include "troupe/replay_costs.h"
#include "troupe/replay_report.h"
#include "troupe/replay_substitution.h"

namespace troupe {
namespace {

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names = EvictionPolicyNames();
  names.push_back("optimum");
  return names;
}

class ReplayCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    options.Add("TRACE", traces_, "Traces; each starts with an empty cache")
        .Required()
        .Type("TRACE...");
    options.Heading("Cache");
    options.Add("--policy", policies_, "Eviction policies to compare (all of them)")
        .SeparatedBy(',')
        .OneOf(PolicyNames())
        .Type("NAME,NAME,…");
    options.Add("--budget", shares_, "Cache sizes in percent of all experts (12.5,25,37.5,50,75)")
        .SeparatedBy(',')
        .Between(0.01, 100.0)
        .Type("P,P,…");
    options.Add("--slots", slots_, "Cache sizes in experts, in place of --budget")
        .SeparatedBy(',')
        .Between(1u, 1u << 28)
        .Excludes("--budget")
        .Type("N,N,…");
    options
        .AddParsed(
            "--cache-share",
            [this](const std::string& text) {
              per_layer_ = text == "layer";
              return OkStatus();
            },
            "layer: each layer has its own part of the cache; global: all layers share one cache "
            "(layer)")
        .OneOf({"layer", "global"})
        .Type("SHARE");
    options
        .Add("--shallow", shallow_,
             "Numbers of first layers whose experts are kept before those of other layers (0)")
        .SeparatedBy(',')
        .Type("N,N,…");
    options
        .Add("--floor", floors_,
             "With --cache-share global: percent of an even part of the cache that a layer keeps, "
             "whatever the others load (0)")
        .SeparatedBy(',')
        .Between(0.0, 100.0)
        .Type("P,P,…");
    options
        .AddParsed(
            "--echo",
            [this](const std::string& text) -> Status {
              TROUPE_ASSIGN_OR_RETURN(echo_, ParseEchoSettings(text));
              return OkStatus();
            },
            "What policy echo judges by: number of past tokens that it listens to, share of recent "
            "use, what is kept of a use for the next token, steps after the next at which a use is "
            "worth half (" +
                ToString(EchoSettings()) + ")")
        .Type("N,S,K,H");
    options.Add("--spare", spare_, "Slots that belong to no layer's part of the cache (0)")
        .Type("N");
    options.AddFlag("--as-recorded", as_recorded_,
                    "Simulate only the cache of the recorded run: reproduces its hits");
    options
        .Add("--pass", group_,
             "Number of tokens computed in one pass; 1 plays prompts as if they had been generated "
             "(as recorded)")
        .Between(1u, 1u << 20)
        .Type("N");
    options.Heading("Prediction");
    options
        .Add("--predict", predictors_,
             "Predictors of the experts to prefetch: none, scores (needs a trace of all scores), "
             "previous, eap, oracle, or oracle:N, which knows the next N layers, across tokens, N "
             "unlimited: all (none)")
        .SeparatedBy(',')
        .Check(CheckReplayPredictor)
        .Suggest(ReplayPredictorNames())
        .Type("NAME,NAME,…");
    options
        .Add("--score-tables", score_tables_,
             "With --predict scores: what `troupe calibrate` learned of the recorded model's "
             "misses (nothing)")
        .Type("FILE");
    options.AddFlag(
        "--ungoverned", [this] { governed_ = false; },
        "Prefetch every predicted expert, even if it does not pay");
    options.Heading("Lossy answers");
    substitution_.AddTo(options);
    options.Heading("Costs");
    costs_.AddTo(options);
    options.Heading(kBasicHeading);
    AddThreadsOption(options, threads_);
    options.Heading(kOutputHeading);
    AddOutputOption(options, "--plot", plot_, "Plot hit rates over cache sizes, as .svg or .html");
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (as_recorded_ &&
        (!policies_.empty() || !shares_.empty() || !slots_.empty() || substitution_.asked() ||
         floors_ != std::vector<double>{0} || echo_ != EchoSettings())) {
      return InvalidArgument(
          "--as-recorded takes no --policy, --budget, --slots, --floor, --echo or --substitute");
    }
    const bool plays_echo = policies_.empty() || std::ranges::count(policies_, "echo") > 0;
    if (echo_ != EchoSettings() && !plays_echo) {
      return InvalidArgument("--echo: of the policy echo alone, which --policy does not name");
    }
    if (per_layer_ && floors_ != std::vector<double>{0}) {
      return InvalidArgument(
          "--floor needs --cache-share global: with a part for each layer nobody takes of it");
    }
    TROUPE_RETURN_IF_ERROR(substitution_.CheckUsage());
    const bool only_optimum = !policies_.empty() && std::ranges::all_of(policies_, [](auto& name) {
      return name == "optimum";
    });
    const bool exact_demand =
        !substitution_.asked() && predictors_ == std::vector<std::string>{"none"};
    if (only_optimum && !exact_demand) {
      return InvalidArgument(
          "the optimum is one of demand alone and of exact answers: --predict and --substitute "
          "need "
          "another --policy beside it");
    }
    const bool foresees = std::ranges::any_of(
        predictors_, [](const std::string& name) { return name.starts_with("oracle:"); });
    if (foresees && substitution_.asked()) {
      return InvalidArgument(
          "--predict oracle:N takes no --substitute: it knows what the router chose");
    }
    if (!score_tables_.empty() && !as_recorded_ &&
        std::ranges::count(predictors_, WorthPrefetch::kName) == 0) {
      return InvalidArgument("--score-tables {}: read with --predict scores alone", score_tables_);
    }
    TROUPE_RETURN_IF_ERROR(CheckPlotName(plot_));
    if (plot_.ends_with(".svg") && traces_.size() > 1) {
      return InvalidArgument("--plot: an .svg is of one trace, found {}; an .html is of all",
                             traces_.size());
    }
    return costs_.CheckUsage();
  }

  Status Run() override {
    ThreadPool pool(threads_ > 0 ? threads_ : AvailableCpus());
    std::vector<ReplayReport> reports;
    for (const std::string& path : traces_) {
      TROUPE_ASSIGN_OR_RETURN(ReplayReport report, PlayOne(path, pool));
      if (json_ != "-") Print(report);
      reports.push_back(std::move(report));
    }
    if (!plot_.empty()) TROUPE_RETURN_IF_ERROR(WriteWholeText(plot_, Plot(reports, plot_)));
    TellPlot(plot_);
    if (json_.empty()) return OkStatus();
    Json records = Json::Array();
    for (const ReplayReport& report : reports) records.push_back(ToJson(report));
    return WriteJson(records, json_);
  }

 private:
  Result<std::vector<ReplaySpec>> Specs(const TraceHeader& header) const {
    if (as_recorded_) return AsRecorded(header);
    std::vector<std::uint32_t> slots = slots_;
    const std::vector<double> shares =
        shares_.empty() ? std::vector<double>{12.5, 25, 37.5, 50, 75} : shares_;
    for (const double share : slots_.empty() ? shares : std::vector<double>()) {
      slots.push_back(SlotsFor(header, share / 100));
    }
    std::vector<ReplaySpec> specs;
    const auto add = [&](const ReplaySpec& spec) {
      for (const std::uint32_t n : slots) {
        specs.push_back(spec);
        specs.back().slots = n;
      }
    };
    for (const std::uint32_t shallow : shallow_) {
      for (const std::string& predictor : predictors_) {
        for (const std::string& policy : Policies(header)) {
          ReplaySpec spec{.policy = policy,
                          .predictor = predictor,
                          .per_layer = per_layer_,
                          .spare = spare_,
                          .shallow = shallow,
                          .echo = echo_,
                          .governed = governed_};
          // It is one of demand alone, of exact answers, and of a pool without a floor.
          if (policy == "optimum") {
            spec.predictor = "none";
            if (predictor == predictors_.front()) add(spec);
            continue;
          }
          for (const std::string& substitution : substitution_.specs()) {
            spec.substitution = substitution;
            for (const double floor : floors_) {
              spec.floor = floor / 100;
              add(spec);
            }
          }
        }
      }
    }
    return specs;
  }

  std::vector<std::string> Policies(const TraceHeader& header) const {
    if (!policies_.empty()) return policies_;
    std::vector<std::string> names = PolicyNames();
    std::erase_if(names, [&](const std::string& name) { return !CanReplay(header, name); });
    return names;
  }

  Result<std::vector<ReplaySpec>> AsRecorded(const TraceHeader& header) const {
    if (!header.cache) {
      return InvalidArgument("the trace tells of no cache: every expert was in memory");
    }
    const RecordedCache& cache = *header.cache;
    // What a gate predicted is not in the trace.
    const bool known = std::ranges::count(ReplayPredictorNames(), cache.predictor) > 0 &&
                       CanPredict(header, cache.predictor);
    if (!known) {
      Remark("note: the run read ahead by '{}', which needs more than routes; replayed without\n",
             cache.predictor);
    }
    return std::vector<ReplaySpec>{{.policy = cache.policy,
                                    .predictor = known ? cache.predictor : "none",
                                    .slots = cache.slots,
                                    .per_layer = cache.per_layer,
                                    .spare = cache.spare,
                                    .shallow = cache.shallow,
                                    .governed = governed_}};
  }

  Result<ReplayReport> PlayOne(const std::string& path, ThreadPool& pool) const {
    TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(path));
    const auto in_trace = [&](Status status) { return std::move(status).WithContext(path); };
    Result<std::vector<ReplaySpec>> specs = Specs(reader.header());
    if (!specs.ok()) return in_trace(specs.status());
    TROUPE_ASSIGN_OR_RETURN(const CostedHeader costed, costs_.For(reader.header(), path));
    ReplayOptions options{.group = group_, .costs = costed.costs};
    options.substitution_tokens = std::clamp(group_, 1u, kMostRoutedTokens);
    TROUPE_RETURN_IF_ERROR(substitution_.Prepare(reader, path, options));
    std::optional<ScoreTables> known;
    if (!score_tables_.empty()) {
      const TraceHeader& header = reader.header();
      TROUPE_ASSIGN_OR_RETURN(known,
                              LoadScoreTables(score_tables_, {.fingerprint = header.fingerprint,
                                                              .grid = header.grid(),
                                                              .experts_per_token = header.top_k,
                                                              .layers = header.moe_layers}));
      options.score_tables = &*known;
    }
    WarnOfIdlePredictors(reader.header(), path);
    const Stopwatch watch;
    ProgressBar bar("replaying");
    options.progress = [&bar](double done, std::uint64_t bytes) {
      bar.Update(Bytes(static_cast<std::uint64_t>(done)), Bytes(bytes));
    };
    Result<std::vector<ReplayOutcome>> outcomes = Replay(reader, *specs, options, pool);
    bar.Clear();
    if (!outcomes.ok()) return in_trace(outcomes.status());
    if (reader.damage().any()) {
      Remark("warning: {}: {}\n", path, ToString(reader.damage()));
    }
    if (outcomes->front().result.all.tokens == 0) {
      return DataLoss("{}: no tokens in it, expected some", path);
    }
    return ReplayReport{.trace = path,
                        .header = reader.header(),
                        .group = group_,
                        .expert_bytes = costed.expert_bytes,
                        .timed = costed.timed,
                        .outcomes = std::move(outcomes).value(),
                        .seconds = watch.Seconds(),
                        .damage = reader.damage()};
  }

  // Reading ahead goes from a layer to the next one of the model.
  void WarnOfIdlePredictors(const TraceHeader& header, const std::string& path) const {
    const auto& layers = header.moe_layers;
    const auto follows = [](std::uint32_t a, std::uint32_t b) { return b == a + 1; };
    const bool predicts = std::ranges::any_of(predictors_, [](auto& p) { return p != "none"; });
    if (!predicts || std::ranges::adjacent_find(layers, follows) != layers.end()) return;
    Remark("note: {}: no recorded layer follows another, so nothing is read ahead\n", path);
  }

  std::vector<std::string> traces_, policies_, predictors_ = {"none"};
  std::vector<double> shares_;
  std::vector<std::uint32_t> slots_;
  std::vector<std::uint32_t> shallow_ = {0};
  std::vector<double> floors_ = {0};
  EchoSettings echo_;
  std::uint32_t spare_ = 0, group_ = 0;
  bool per_layer_ = true, governed_ = true, as_recorded_ = false;
  std::size_t threads_ = 0;
  ReplayCostFlags costs_;
  ReplaySubstitutionFlags substitution_;
  std::string score_tables_, plot_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeReplayCommand() { return std::make_unique<ReplayCommand>(); }

}  // namespace troupe
