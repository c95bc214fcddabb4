#include "runtime/quality_curve.h"

#include <algorithm>
#include <filesystem>

#include "base/json_value.h"
#include "io/text_file.h"
#include "machine/cost_model_file.h"
#include "runtime/container_path.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr std::string_view kCurveFormat = "troupe quality curve";
constexpr std::uint32_t kCurveVersion = 2;
constexpr Bytes kMostCurveBytes = 16_MiB;  // of a file that is read
constexpr double kMostOfAToken = 1e18;

Json ToJson(const MeasuredMean& mean) {
  return {{"mean", mean.mean}, {"least", mean.least}, {"most", mean.most}};
}

Json ToJson(const MeasuredChain& chain) {
  return {{"chain", chain.chain},
          {"tokens", chain.tokens},
          {"kl", ToJson(chain.kl)},
          {"perplexity_ratio", ToJson(chain.perplexity_ratio)},
          {"changed", chain.changed},
          {"bytes_per_token", chain.bytes},
          {"seconds_per_token", chain.seconds}};
}

MeasuredMean MeanFrom(const JsonValue& json) {
  MeasuredMean mean{.mean = json.At("mean").Number(0, kMostOfAToken)};
  mean.least = json.At("least").Number(0, mean.mean);
  mean.most = json.At("most").Number(mean.mean, kMostOfAToken);
  return mean;
}

MeasuredChain ChainFrom(const JsonValue& json) {
  return {.chain = json.At("chain").String(),
          .tokens = json.At("tokens").Count(1, std::uint64_t{1} << 50),
          .kl = MeanFrom(json.At("kl")),
          .perplexity_ratio = MeanFrom(json.At("perplexity_ratio")),
          .changed = json.At("changed").Number(0, 1),
          .bytes = json.At("bytes_per_token").Number(0, kMostOfAToken),
          .seconds = json.At("seconds_per_token").Number(0, kMostOfAToken)};
}

MeasuredShare ShareFrom(const JsonValue& json, double above) {
  const double share = json.At("share").Number();
  if (!(share > above && share <= 1)) {
    json.At("share").Fail(fmt::format("a share above {} and at most 1", above));
  }
  MeasuredShare measured{.share = share, .exact = ChainFrom(json.At("exact")), .chains = {}};
  const JsonValue chains = json.At("chains");
  if (!chains.IsArray()) chains.Fail("an array");
  for (std::size_t i = 0; i < chains.size(); ++i) {
    measured.chains.push_back(ChainFrom(chains.At(i)));
  }
  return measured;
}

QualityCurve CurveFrom(const JsonValue& json) {
  if (!json.IsObject() || !json.Has("format") || json.At("format").raw() != kCurveFormat) {
    JsonValue::Refuse(fmt::format("not a {}", kCurveFormat));
  }
  if (json.At("version").raw() != kCurveVersion)
    json.At("version").Fail(fmt::format("{}", kCurveVersion));
  QualityCurve curve{.fingerprint = json.At("model").String(),
                     .text = json.At("text").String(),
                     .tokens = json.At("tokens").Count(1, std::uint64_t{1} << 50),
                     .cache = json.At("cache").String(),
                     .predictor = json.At("predictor").String(),
                     .reading = json.At("reading").String(),
                     .machine = json.At("machine").String(),
                     .perplexity = json.At("perplexity").Number(1, 1e300),
                     .shares = {}};
  const JsonValue shares = json.At("shares");
  if (!shares.IsArray() || shares.size() == 0) shares.Fail("a share measured, or more");
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double above = curve.shares.empty() ? 0 : curve.shares.back().share;
    curve.shares.push_back(ShareFrom(shares.At(i), above));
  }
  return curve;
}

std::string PathOf(const GgufModel& model, const std::string& named) {
  return named.empty() ? QualityPathFor(model.path()) : named;
}

std::string CommandFor(const GgufModel& model) {
  return fmt::format("`troupe calibrate {} --text FILE --measure-quality`", model.path());
}

// The model's own.
Result<QualityCurve> LoadFor(const GgufModel& model, const std::string& named) {
  const std::string path = PathOf(model, named);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error(
        Code::kNotFound,
        "{}: no such file, but --quality and --latency need what was measured; {} measures "
        "it",
        path, CommandFor(model));
  }
  Result<QualityCurve> loaded = LoadQuality(path);
  if (!loaded.ok()) {
    return Error(loaded.status().code(), "{}; {} makes it anew", loaded.status().message(),
                 CommandFor(model));
  }
  QualityCurve& curve = *loaded;
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  if (curve.fingerprint != ToString(fingerprint)) {
    return InvalidArgument("{}: made for another model; {} makes it anew", path, CommandFor(model));
  }
  return loaded;
}

// `share`: what to measure; `why` it is that one.
Status NotMeasured(const Status& status, const GgufModel& model, double share,
                   const std::string& named, std::string_view why = "") {
  return Error(status.code(), "{}: {}; {} does, with --shares {:.3g}{}", PathOf(model, named),
               status.message(), CommandFor(model), 100 * share, why);
}

}  // namespace

std::string MeasuredOtherwise(const QualityCurve& before, const QualityCurve& now) {
  if (before.fingerprint != now.fingerprint) return "another model";
  if (before.text != now.text) return fmt::format("the text {}", before.text);
  if (before.tokens != now.tokens) return fmt::format("{} tokens", before.tokens);
  if (before.cache != now.cache) return fmt::format("--cache {}", before.cache);
  if (before.predictor != now.predictor) return fmt::format("--predict {}", before.predictor);
  if (before.reading != now.reading) return before.reading;
  if (before.machine != now.machine) return fmt::format("the machine {}", before.machine);
  if (before.perplexity != now.perplexity) {
    return fmt::format("another text or window (exact perplexity {:.4f}, now {:.4f})",
                       before.perplexity, now.perplexity);
  }
  return "";
}

QualityCurve WithSharesOf(const QualityCurve& before, QualityCurve now) {
  for (const MeasuredShare& share : before.shares) {
    const auto again = std::ranges::find(now.shares, share.share, &MeasuredShare::share);
    if (again == now.shares.end()) {
      now.shares.push_back(share);
      continue;
    }
    for (const MeasuredChain& chain : share.chains) {
      if (std::ranges::find(again->chains, chain.chain, &MeasuredChain::chain) ==
          again->chains.end()) {
        again->chains.push_back(chain);
      }
    }
  }
  std::ranges::sort(now.shares, {}, &MeasuredShare::share);
  return now;
}

std::string QualityPathFor(std::string_view model_path) {
  return PathBeside(model_path, ".quality.json");
}

Status SaveQuality(const QualityCurve& curve, const std::string& path) {
  Json json = {{"format", kCurveFormat},       {"version", kCurveVersion},
               {"model", curve.fingerprint},   {"text", curve.text},
               {"tokens", curve.tokens},       {"cache", curve.cache},
               {"predictor", curve.predictor}, {"reading", curve.reading},
               {"machine", curve.machine},     {"perplexity", curve.perplexity},
               {"shares", Json::Array()}};
  for (const MeasuredShare& share : curve.shares) {
    Json chains = Json::Array();
    for (const MeasuredChain& chain : share.chains) chains.push_back(ToJson(chain));
    json["shares"].push_back(
        {{"share", share.share}, {"exact", ToJson(share.exact)}, {"chains", std::move(chains)}});
  }
  return WriteWholeText(path, json.Dump(1) + "\n");
}

Result<QualityCurve> LoadQuality(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kMostCurveBytes));
  return ReadJson<QualityCurve>(path, text, CurveFrom);
}

std::string DescribeMachine(std::uint32_t threads, const LinkSpeed& link) {
  const MachineId machine = ThisMachine();
  std::string text =
      fmt::format("{} of {} x {}, {}", threads, machine.cpus, machine.cpu, machine.kernels);
  if (link.bytes_per_second > 0 || link.latency_seconds > 0) text += ", " + ToString(link);
  return text;
}

Result<QualityChoice> ChooseChainFor(const GgufModel& model, double share, double most_loss,
                                     const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const QualityCurve curve, LoadFor(model, path));
  const Result<ChosenChain> chosen = ChooseChain(curve.shares, share, most_loss);
  // Holds for larger shares, too, and another run may have a little less than this one.
  constexpr double kSpared = 0.1;
  if (!chosen.ok()) {
    return NotMeasured(chosen.status(), model, (1 - kSpared) * share, path,
                       " (a tenth less, for runs that hold a little less)");
  }
  return QualityChoice{.chain = *chosen,
                       .cache = curve.cache,
                       .predictor = curve.predictor,
                       .reading = curve.reading};
}

std::string ToString(const TimedUnder& conditions) {
  return fmt::format("{} with --cache {}, --predict {} and {}", conditions.machine,
                     conditions.cache, conditions.predictor, conditions.reading);
}

Result<AlphaChoice> ChooseAlphaFor(const GgufModel& model, double share, double seconds,
                                   const TimedUnder& conditions, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const QualityCurve curve, LoadFor(model, path));
  const TimedUnder measured{curve.machine, curve.cache, curve.predictor, curve.reading};
  if (measured != conditions) {
    return Error(Code::kFailedPrecondition,
                 "{}: times of '{}' found, of '{}' expected; {} with the same options takes them",
                 PathOf(model, path), ToString(measured), ToString(conditions), CommandFor(model));
  }
  const Result<AlphaChoice> chosen = ChooseAlpha(curve.shares, share, seconds);
  if (!chosen.ok()) return NotMeasured(chosen.status(), model, share, path);
  return chosen;
}

}  // namespace troupe
