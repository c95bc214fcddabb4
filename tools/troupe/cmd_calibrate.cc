// `troupe calibrate`: learns from a text how well a model's gates predict each other and which
// experts are chosen together, and leaves what it learned beside the model, where `troupe run`
// finds it.
#include <algorithm>
#include <string>

#include "gguf/reader.h"
#include "lab/buddy_recorder.h"
#include "lab/calibration.h"
#include "store/model_fingerprint.h"
#include "troupe/commands.h"
#include "troupe/engine_flags.h"
#include "troupe/json_record.h"
#include "troupe/measure_cuts.h"
#include "troupe/measure_groups.h"
#include "troupe/measure_quality.h"
#include "troupe/options.h"
#include "troupe/output_path.h"
#include "troupe/progress.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

class CalibrateCommand final : public Command {
 public:
  void AddOptions(Options& options) override {
    engine_.AddTo(options);
    options.Heading("Learning");
    options.Add("--text", text_, "Text to learn from, similar to what will be run (- for stdin)")
        .Required()
        .Type("FILE");
    AddOutputOption(options, "-o,--output", output_, "File for the profile (beside the model)");
    options.Add("--tokens", options_.most_tokens, "Most tokens of the text to use (32768)")
        .Between(std::size_t{1}, kMostTokens)
        .Type("N");
    AddOutputOption(options, "--buddies-output", buddies_output_,
                    "File for the experts that are chosen together (beside the model)");
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
    for (const std::string& file : {path, buddies_path}) {  // before the work
      TROUPE_RETURN_IF_ERROR(CheckOutputFile(file));
    }
    TROUPE_ASSIGN_OR_RETURN(const Learned learned, Learn());
    TROUPE_RETURN_IF_ERROR(SaveProfile(learned.profile, path));
    TROUPE_RETURN_IF_ERROR(SaveBuddies(learned.buddies, buddies_path));
    const bool table = json_ != "-";
    if (table) {
      Print(learned.profile, path);
      Print(learned.buddies, buddies_path);
    }
    Json record = Record(learned.profile, path);
    record["buddies"] = buddies_path;
    record["mean_buddies"] = learned.buddies.buddies.MeanLength();
    record["mean_coverage"] = MeanCoverage(learned.buddies.buddies);
    if (learned.groups) {
      TROUPE_ASSIGN_OR_RETURN(
          record["groups"],
          groups_.SaveAndMeasure(engine_, *learned.groups,
                                 {.ids = learned.Last(groups_.tokens()), .begin = options_.begin},
                                 table));
    }
    if (quality_.wanted()) {
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
    std::optional<GroupGateFile> groups;
    std::vector<TokenId> read, unread;  // the end of the text is kept for measuring

    std::span<const TokenId> Last(std::size_t tokens) const {
      return std::span(unread).last(tokens);
    }
  };

  // With room for all that is counted. A token has a byte at least.
  Result<std::unique_ptr<Engine>> OpenFor(const std::string& text) {
    CalibrationOptions options = options_;
    options.most_tokens = std::min(options.most_tokens, text.size());
    engine_.TakesBeside([this, options, size = text.size()](const ModelConfig& config) {
      return CalibrationBytes(config, options) + groups_.TakesBeside(config, size) +
             Coactivations::BytesFor(
                 {.layers = config.layers, .experts = config.moe.routing.experts});
    });
    Result<std::unique_ptr<Engine>> engine = engine_.Open(options_.window);
    engine_.TakesBeside(nullptr);  // measuring quality counts nothing
    return engine;
  }

  // The engine ends with it: quality is measured on others, and the budget is for one.
  Result<Learned> Learn() {
    TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(text_));
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine, OpenFor(text));
    if (engine->tokenizer().vocab().add_bos) options_.begin = engine->tokenizer().vocab().bos;
    TROUPE_ASSIGN_OR_RETURN(const std::vector<TokenId> ids,
                            engine->tokenizer().Encode(text, {.add_special = false}));
    TROUPE_RETURN_IF_ERROR(groups_.CheckModel(*engine));
    const std::size_t kept = std::max({quality_.tokens(), groups_.tokens(), cuts_.tokens()});
    if (ids.size() < 2 * kept) {
      return InvalidArgument(
          "{}: {} tokens, at least {} expected: {} to measure on, as many to learn from", text_,
          ids.size(), 2 * kept, kept);
    }
    const std::span<const TokenId> read = std::span(ids).first(ids.size() - kept);
    TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(*engine));
    BuddyRecorder recorder(engine->config());
    options_.routes = &recorder;
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
    BuddyProfile buddies = recorder.Profile(buddies_);
    profile.fingerprint = buddies.fingerprint = ToString(fingerprint);
    profile.text = buddies.text = text_;
    if (groups) groups->fingerprint = profile.fingerprint, groups->text = text_;
    return Learned{.profile = std::move(profile),
                   .buddies = std::move(buddies),
                   .groups = std::move(groups),
                   .read = {read.begin(), read.end()},
                   .unread = {ids.begin() + static_cast<std::ptrdiff_t>(read.size()), ids.end()}};
  }

  static std::string Percent(const ForecastQuality& quality) {
    if (quality.tokens == 0) return fmt::format("{:>13}", "-");
    return fmt::format("{:5.1f} {:5.1f} %", 100 * quality.expected, 100 * quality.guessed);
  }

  // Of all layers that have the figure; weighed alike, as a token passes them all.
  template <typename Figure>
  static ForecastQuality Mean(const ModelProfile& profile, Figure figure) {
    ForecastQuality mean;
    double layers = 0;
    for (const ProfiledLayer& layer : profile.forecasts) {
      const ForecastQuality& quality = figure(layer);
      if (quality.tokens == 0) continue;
      layers += 1;
      mean.tokens += quality.tokens;
      mean.similarity += quality.similarity;
      mean.expected += quality.expected;
      mean.guessed += quality.guessed;
    }
    if (layers == 0) return mean;
    mean.similarity /= layers;
    mean.expected /= layers;
    mean.guessed /= layers;
    return mean;
  }

  // What is guessed of the next layer while this one computes: with what was learned, and without.
  static void PrintFirst(const ModelProfile& profile) {
    const auto mean = [&profile](auto figure) { return 100 * Mean(profile, figure).guessed; };
    const double learned = mean([](const ProfiledLayer& layer) -> const ForecastQuality& {
      return layer.corrected.front();
    });
    const double plain = mean([](const ProfiledLayer& layer) -> const ForecastQuality& {
      return layer.plain[static_cast<std::size_t>(ForecastPlace::kGateBefore)];
    });
    fmt::print(
        "done: {:.0f} % of the experts that a layer uses will be predicted instead of {:.0f} %; "
        "runs "
        "of this model with less memory than it has experts find that by themselves\n",
        learned, plain);
  }

  static void Print(const ModelProfile& profile, const std::string& path) {
    PrintFirst(profile);
    fmt::print(
        "{} tokens: of the experts chosen, the share predicted as top-k, and with the likely "
        "further ones\n",
        profile.tokens);
    fmt::print("        plain gate shown                            corrected, layers ahead\n");
    fmt::print("layer  {:>13} {:>13} {:>13}   {:>13} {:>13} {:>13}\n", "attention in", "gate in",
               "next att. in", "1", "2", "3");
    const auto row = [](const std::string& name, const auto& of) {
      fmt::print("{:<6}", name);
      for (std::size_t i = 0; i < kForecastPlaces.size(); ++i) fmt::print(" {}", Percent(of(0, i)));
      fmt::print("  ");
      for (std::size_t i = 0; i < kMostLayersAhead; ++i) fmt::print(" {}", Percent(of(1, i)));
      fmt::print("\n");
    };
    for (const ProfiledLayer& layer : profile.forecasts) {
      row(fmt::format("{}", layer.layer), [&layer](int kind, std::size_t i) {
        return kind == 0 ? layer.plain[i] : layer.corrected[i];
      });
    }
    row("mean", [&profile](int kind, std::size_t i) {
      return Mean(profile, [kind, i](const ProfiledLayer& layer) -> const ForecastQuality& {
        return kind == 0 ? layer.plain[i] : layer.corrected[i];
      });
    });
    fmt::print("similar");
    for (std::size_t i = 0; i < kForecastPlaces.size(); ++i) {
      fmt::print(" {:>12.3f}",
                 Mean(profile, [i](const ProfiledLayer& layer) -> const ForecastQuality& {
                   return layer.plain[i];
                 }).similarity);
    }
    fmt::print("   (cosine with the gate's own input)\n");
    for (const ProfiledShare& share : profile.shallow) {
      const std::uint32_t best = BestShallow(share.costs);
      fmt::print(
          "{:5.1f} % of the experts in memory: {} shallow layer{} kept fully; "
          "{:.2f} misses a token, {:.2f} not predicted (none kept: {:.2f}, {:.2f})\n",
          100 * share.share, best, best == 1 ? "" : "s", share.costs[best].misses,
          share.costs[best].uncovered, share.costs[0].misses, share.costs[0].uncovered);
    }
    fmt::print("left in {}\n", path);
  }

  // Of the lists that are not empty.
  static double MeanCoverage(const BuddyLists& buddies) {
    double sum = 0, lists = 0;
    for (const std::vector<Buddy>& list : buddies.lists) {
      lists += list.empty() ? 0 : 1;
      for (const Buddy& buddy : list) sum += buddy.share;
    }
    return lists == 0 ? 0 : sum / lists;
  }

  static void Print(const BuddyProfile& profile, const std::string& path) {
    const std::vector<double> tau = profile.EntropyAt(BuddyProfile::kTauPercentile);
    double least = 1, most = 0;
    for (const BuddyLayer& layer : profile.layers) {
      least = std::min(least, tau[layer.layer]);
      most = std::max(most, tau[layer.layer]);
    }
    fmt::print(
        "{:.1f} buddies an expert, chosen in {:.1f} % of its company; {} % of a layer's tokens "
        "have "
        "less entropy than {:.3f} to {:.3f}\n",
        profile.buddies.MeanLength(), 100 * MeanCoverage(profile.buddies),
        BuddyProfile::kTauPercentile, least, most);
    fmt::print("left in {}\n", path);
  }

  static Json Record(const ModelProfile& profile, const std::string& path) {
    Json record;
    record["profile"] = path;
    record["tokens"] = profile.tokens;
    const auto add = [&record](const std::string& name, const ForecastQuality& quality) {
      record[name] = {{"similarity", quality.similarity},
                      {"expected", quality.expected},
                      {"guessed", quality.guessed}};
    };
    for (const ForecastPlace place : kForecastPlaces) {
      add(std::string(Name(place)),
          Mean(profile, [place](const ProfiledLayer& layer) -> const ForecastQuality& {
            return layer.plain[static_cast<std::size_t>(place)];
          }));
    }
    for (std::size_t i = 0; i < kMostLayersAhead; ++i) {
      add(fmt::format("corrected {}", i + 1),
          Mean(profile, [i](const ProfiledLayer& layer) -> const ForecastQuality& {
            return layer.corrected[i];
          }));
    }
    return record;
  }

  EngineFlags engine_;
  CalibrationOptions options_;
  BuddyOptions buddies_;
  MeasureGroups groups_;
  MeasureQuality quality_;
  MeasureCuts cuts_;
  std::string text_, output_, buddies_output_, json_;
};

}  // namespace

std::unique_ptr<Command> MakeCalibrateCommand() { return std::make_unique<CalibrateCommand>(); }

}  // namespace troupe
