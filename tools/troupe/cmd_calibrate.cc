// `troupe calibrate`: learns from a text how well a model's gates predict each other and which
// experts are chosen together, and leaves what it learned beside the model, where `troupe run`
// finds it. From a trace it learns what recorded routes and scores can tell (trace_calibration.h).
#include <algorithm>
#include <bit>
#include <cstdio>
#include <optional>
#include <string>

#include "gguf/reader.h"
#include "lab/buddy_recorder.h"
#include "lab/calibration.h"
#include "runtime/score_tables_file.h"
#include "store/model_fingerprint.h"
#include "troupe/calibration_page.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/measure_cuts.h"
#include "troupe/measure_groups.h"
#include "troupe/measure_quality.h"
#include "troupe/options.h"
#include "troupe/output_path.h"
#include "troupe/progress.h"
#include "troupe/remark.h"
#include "troupe/text_input.h"
#include "troupe/trace_calibration.h"

namespace troupe {
namespace {

constexpr const char* kNoScores = "none";
constexpr const char* kWhyNoTables =
    "does not have the scores of all experts (--trace-scores all records them)";

class CalibrateCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    engine_.AddTo(options);
    options.Heading("Learning");
    options.Add("--text", text_, "Text to learn from, similar to what will be run (- for stdin)")
        .Type("FILE");
    options
        .Add(
            "--trace", trace_,
            "In place of a text: a recorded run of the model to learn from, which tells everything "
            "but what corrects the forecasts of gates; --trace-scores all records what the tables "
            "of scores take")
        .Excludes("--text")
        .Type("TRACE");
    AddOutputOption(options, "-o,--output", output_, "File for the profile (beside the model)");
    options.Add("--tokens", options_.most_tokens, "Most tokens of the text or trace to use (32768)")
        .Between(std::size_t{1}, kMostTokens)
        .Type("N");
    AddOutputOption(options, "--buddies-output", buddies_output_,
                    "File for the experts that are chosen together (beside the model)");
    options
        .Add("--scores-output", scores_output_,
             "File for the tables that --predict scores begins with, or none: they are not learned "
             "(beside the model)")
        .Check([](const std::string& path) {
          return path == kNoScores ? OkStatus() : CheckOutputFile(path);
        })
        .Suggest({kNoScores})
        .Type("FILE");
    options
        .Add(
            "--coverage", buddies_.coverage,
            "Share of the experts chosen together with an expert that its buddy list covers (0.95)")
        .Between(0.0, 1.0)
        .Type("SHARE");
    options.Add("--most-buddies", buddies_.most, "Longest buddy list (16)")
        .Between(1u, 1u << 10)
        .Type("N");
    options
        .Add("--smoothing", buddies_.smoothing,
             "Added to the number of times two experts were chosen together (0)")
        .Between(0.0, 1e9)
        .Type("COUNT");
    options.AddFlag("--weighted", buddies_.weighted,
                    "Count two experts chosen together by the smaller of their two weights for the "
                    "token");
    groups_.AddTo(options);
    quality_.AddTo(options);
    cuts_.AddTo(options);
    options.Heading(kOutputHeading);
    AddJsonOption(options, json_);
  }

  Status CheckUsage() const override {
    if (!engine_.options().offload.exact()) {
      return InvalidArgument(
          "--quality, --latency, --substitute, --low-copy and --gate: what is learned is learned "
          "from exact runs");
    }
    if (text_.empty() && trace_.empty()) return InvalidArgument("--text or --trace is required");
    if (!trace_.empty() && (groups_.wanted() || quality_.wanted() || cuts_.wanted())) {
      return InvalidArgument(
          "--trace: --groups, --measure-quality and --cut take runs of a text (--text)");
    }
    return quality_.CheckUsage();
  }

  Status Run() override {
    std::vector<std::uint32_t> cache_sizes;
    if (quality_.wanted()) {
      TROUPE_ASSIGN_OR_RETURN(cache_sizes, quality_.CacheSizes(engine_));
    }
    if (cuts_.wanted()) TROUPE_RETURN_IF_ERROR(cuts_.CheckModel(engine_));
    const std::string path = output_.empty() ? ProfilePathFor(engine_.model()) : output_;
    const std::string buddies_path =
        buddies_output_.empty() ? BuddiesPathFor(engine_.model()) : buddies_output_;
    const std::optional<std::string> scores_path = ScoresPath();
    // Before the work.
    for (const std::string& file : {path, buddies_path, scores_path.value_or(path)}) {
      TROUPE_RETURN_IF_ERROR(CheckOutputFile(file));
    }
    if (!trace_.empty()) return LearnFromTrace(path, buddies_path, scores_path);
    TROUPE_ASSIGN_OR_RETURN(const Learned learned, Learn(scores_path));
    TROUPE_RETURN_IF_ERROR(SaveProfile(learned.profile, path));
    TROUPE_RETURN_IF_ERROR(SaveBuddies(learned.buddies, buddies_path));
    const bool table = json_ != "-";
    if (table) {
      const bool measures = groups_.wanted() || quality_.wanted() || cuts_.wanted();
      fmt::print("{}\n{}", CalibrationPage(learned.profile, path, /*ends=*/!measures),
                 BuddiesPage(learned.buddies, buddies_path));
    }
    Json record = CalibrationRecord(learned.profile, path);
    AddBuddies(learned.buddies, buddies_path, record);
    if (scores_path) AddScores(*scores_path, learned.score_tokens, table, record);
    if (learned.groups) {
      TROUPE_ASSIGN_OR_RETURN(
          record["groups"],
          groups_.SaveAndMeasure(engine_, *learned.groups,
                                 {.ids = learned.Last(groups_.tokens()), .begin = options_.begin},
                                 table));
    }
    if (quality_.wanted()) {
      if (table) fmt::print("\nnow measuring quality: {} tokens\n", quality_.tokens());
      std::fflush(stdout);  // it may take hours
      TROUPE_ASSIGN_OR_RETURN(
          const QualityCurve curve,
          quality_.Measure(
              engine_,
              {.name = text_, .ids = learned.Last(quality_.tokens()), .begin = options_.begin},
              learned.profile.fingerprint, buddies_path, cache_sizes, table));
      if (table) fmt::print("left in {}\n", quality_.path(engine_.model()));
      record["quality"] = MeasureQuality::Record(curve);
      record["quality"]["file"] = quality_.path(engine_.model());
    }
    if (cuts_.wanted()) {
      TROUPE_ASSIGN_OR_RETURN(
          const CutFile cuts,
          cuts_.Measure(engine_,
                        {.name = text_,
                         .fit_on = learned.read,
                         .measure_on = std::span(learned.unread).last(cuts_.tokens()),
                         .begin = options_.begin},
                        learned.profile.fingerprint, table));
      if (table) fmt::print("left in {}\n", cuts_.path(engine_.model()));
      record["cuts"] = {{"file", cuts_.path(engine_.model())}, {"cuts", MeasureCuts::Record(cuts)}};
    }
    if (json_.empty()) return OkStatus();
    return WriteJson(record, json_);
  }

 private:
  struct Learned {
    ModelProfile profile;
    BuddyProfile buddies;
    std::uint64_t score_tokens = 0;  // whose scores were learned from, if any were
    std::optional<GroupGateFile> groups;
    std::vector<TokenId> read, unread;  // the end of the text is kept for measuring

    std::span<const TokenId> Last(std::size_t tokens) const {
      return std::span(unread).last(tokens);
    }
  };

  // None: no tables are to be learned.
  std::optional<std::string> ScoresPath() const {
    if (scores_output_ == kNoScores) return std::nullopt;
    return scores_output_.empty() ? ScoresPathFor(engine_.model()) : scores_output_;
  }

  static void AddScores(const std::string& path, std::uint64_t tokens, bool prints, Json& record) {
    if (prints) {
      fmt::print("what scores tell of misses is left in {}, with which --predict scores begins\n",
                 path);
    }
    record["scores"] = path;
    record["scores_tokens"] = tokens;
  }

  static void AddBuddies(const BuddyProfile& buddies, const std::string& path, Json& record) {
    record["buddies"] = path;
    record["mean_buddies"] = buddies.buddies.MeanLength();
    record["mean_coverage"] = MeanCoverage(buddies.buddies);
  }

  // Runs nothing: what a trace has of its model is read, and the model's file only to see that it
  // is the one.
  Status LearnFromTrace(const std::string& path, const std::string& buddies_path,
                        const std::optional<std::string>& scores_path) {
    // What a text taught is a profile and its buddies.
    if (output_.empty() || buddies_output_.empty()) {
      TROUPE_RETURN_IF_ERROR(CheckReplaceable(ProfilePathFor(engine_.model())));
    }
    TROUPE_ASSIGN_OR_RETURN(TraceReader reader, TraceReader::Open(trace_));
    TROUPE_ASSIGN_OR_RETURN(const GgufModel model, GgufModel::Open(engine_.model()));
    TROUPE_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(model.metadata()));
    TROUPE_RETURN_IF_ERROR(CheckTraceOf(reader, model, config));
    TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
    const bool scores = scores_path && reader.header().all_scores;
    if (scores && scores_output_.empty()) {
      TROUPE_RETURN_IF_ERROR(
          CheckTablesReplaceable(*scores_path, TablesOfModel(config, ToString(fingerprint))));
    }
    if (scores_path && !scores && !scores_output_.empty()) {
      return InvalidArgument("{}: {}, as --scores-output takes", trace_, kWhyNoTables);
    }
    TROUPE_ASSIGN_OR_RETURN(
        TraceCalibration learned,
        LearnRoutes(reader, config,
                    {.buddies = buddies_, .most_tokens = options_.most_tokens, .scores = scores}));
    if (reader.damage().any()) Remark("warning: {}: {}\n", trace_, ToString(reader.damage()));
    if (reader.header().scores == ScoreKind::kNone) {
      Remark("note: {}: has no scores; the chosen experts of a token count as equals\n", trace_);
    }
    if (scores_path && !scores) {
      Remark("note: {}: {}, so no tables for --predict scores are learned\n", trace_, kWhyNoTables);
    }
    learned.profile.fingerprint = learned.buddies.fingerprint = ToString(fingerprint);
    learned.profile.text = learned.buddies.text = trace_;
    TROUPE_RETURN_IF_ERROR(SaveProfile(learned.profile, path));
    TROUPE_RETURN_IF_ERROR(SaveBuddies(learned.buddies, buddies_path));
    if (json_ != "-") {
      fmt::print("{}\n{}", RoutesPage(learned, path), BuddiesPage(learned.buddies, buddies_path));
    }
    Json record = RoutesRecord(learned, path);
    AddBuddies(learned.buddies, buddies_path, record);
    if (learned.scores) {
      TROUPE_RETURN_IF_ERROR(
          SaveScoreTables(*learned.scores, learned.profile.fingerprint, *scores_path));
      AddScores(*scores_path, learned.profile.tokens, json_ != "-", record);
    }
    if (json_.empty()) return OkStatus();
    return WriteJson(record, json_);
  }

  // With room for all that is counted. A token has a byte at least.
  Result<std::unique_ptr<Engine>> OpenFor(const std::string& text) {
    CalibrationOptions options = options_;
    options.most_tokens = std::min(options.most_tokens, text.size());
    engine_.TakesBeside([this, options, size = text.size()](const ModelConfig& config) {
      return CalibrationBytes(config, options, ScoresPath().has_value()) +
             groups_.TakesBeside(config, size) +
             Coactivations::BytesFor(
                 {.layers = config.layers, .experts = config.moe.routing.experts});
    });
    Result<std::unique_ptr<Engine>> engine = engine_.Open(options_.window);
    engine_.TakesBeside(nullptr);  // measuring quality counts nothing
    return engine;
  }

  // For a text that is too short: asks for fewer tokens, `room` at most, where that would do.
  std::string WayOutWith(std::size_t room) const {
    const bool others_fit = std::max(groups_.tokens(), cuts_.tokens()) <= room;
    if (!quality_.wanted() || !others_fit || room < MeasureQuality::kLeastTokens) return "";
    return fmt::format(", or --quality-tokens {}", std::bit_floor(room));
  }

  // The engine ends with it: quality is measured on others, and the budget is for one. Tables of
  // scores may be as large as all else, so they are written as soon as they are learned.
  Result<Learned> Learn(const std::optional<std::string>& scores_path) {
    TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenFor(text));
    if (engine->tokenizer().vocab().add_bos) options_.begin = engine->tokenizer().vocab().bos;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                            engine->tokenizer().Encode(text, {.add_special = false}));
    TROUPE_RETURN_IF_ERROR(groups_.CheckModel(*engine));
    const std::size_t kept = std::max({quality_.tokens(), groups_.tokens(), cuts_.tokens()});
    if (ids.size() < 2 * kept) {
      return InvalidArgument(
          "{}: {} tokens, at least {} expected: {} to measure on, as many to learn from{}", text_,
          ids.size(), 2 * kept, kept, WayOutWith(ids.size() / 2));
    }
    const std::span<const TokenId> read = std::span(ids).first(ids.size() - kept);
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    BuddyRecorder recorder(engine->config());
    options_.routes = &recorder;
    const MoeConfig& moe = engine->config().moe;
    std::optional<ScoreLearner> scores;
    if (scores_path && moe.routing.experts > 0) {
      scores.emplace(ExpertGrid{.layers = engine->config().layers, .experts = moe.routing.experts},
                     moe.routing.top_k, moe.leading_dense);
      options_.scores = &*scores;
    }
    TROUPE_ASSIGN_OR_RETURN(ModelProfile profile, [&] {
      ProgressBar bar("reading");
      options_.progress = [&bar](std::size_t done, std::size_t all) {
        bar.UpdateCount(static_cast<double>(done), all);
      };
      return Calibrate(session, *engine, read, options_);
    }());
    std::optional<GroupGateFile> groups;
    if (groups_.wanted()) {
      TROUPE_ASSIGN_OR_RETURN(groups, groups_.Learn(session, *engine, read, options_.begin));
    }
    TROUPE_ASSIGN_OR_RETURN(const GgufModel file, GgufModel::Open(engine->path()));
    TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(file));
    const std::uint64_t score_tokens = scores ? scores->tokens() : 0;
    if (scores) {
      TROUPE_RETURN_IF_ERROR(
          SaveScoreTables(std::move(*scores).Learned(), ToString(fingerprint), *scores_path));
      scores.reset();
    }
    BuddyProfile buddies = recorder.Profile(buddies_);
    profile.fingerprint = buddies.fingerprint = ToString(fingerprint);
    profile.text = buddies.text = text_;
    if (groups) groups->fingerprint = profile.fingerprint, groups->text = text_;
    return Learned{.profile = std::move(profile),
                   .buddies = std::move(buddies),
                   .score_tokens = score_tokens,
                   .groups = std::move(groups),
                   .read = {read.begin(), read.end()},
                   .unread = {ids.begin() + static_cast<std::ptrdiff_t>(read.size()), ids.end()}};
  }

  EngineFlags engine_;
  CalibrationOptions options_;
  BuddyOptions buddies_;
  MeasureGroups groups_;
  MeasureQuality quality_;
  MeasureCuts cuts_;
  std::string text_, trace_, output_, buddies_output_, scores_output_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeCalibrateCommand() { return std::make_unique<CalibrateCommand>(); }

}  // namespace troupe
