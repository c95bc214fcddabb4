#include "troupe/measure_cuts.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "expert/substitution/quality_limit.h"
#include "io/text_file.h"
#include "lab/cut_model.h"
#include "runtime/container_path.h"
#include "runtime/plan_model.h"
#include "troupe/options.h"
#include "troupe/progress.h"
#include "troupe/remark.h"

namespace troupe {
namespace {

constexpr Bytes kMostCutFileBytes = 4_GiB;  // of a file that is read

// Nothing if there is none, or none that can stand beside this model's.
CutFile LoadBefore(const std::string& path, const std::string& fingerprint) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const Result<std::string> text = ReadWholeText(path, kMostCutFileBytes);
  Result<CutFile> before = text.ok() ? DecodeCutFile(path, *text) : text.status();
  if (!before.ok()) {
    Remark("note: {}; replaced\n", before.status().message());
    return {};
  }
  if (before->fingerprint != fingerprint) {
    Remark("note: {}: its cuts are of another model; replaced\n", path);
    return {};
  }
  return *std::move(before);
}

void PrintCut(const PricedCut& cut) {
  fmt::print(
      "\ncut before layer {}: fitted on {} tokens, {} massive channel{} apart; measured on {} "
      "others\n",
      cut.basis.layer, cut.fitted_on, cut.basis.kept.size(), cut.basis.kept.size() == 1 ? "" : "s",
      cut.measured_on);
  fmt::print("{:<20} {:>13} {:>9} {:>12} {:>9} {:>9} {:>9} {:>9} {:>11} {:>8}\n", "code",
             "bytes a token", "of exact", "states lost", "mean KL", "loss", "at most", "same top",
             "bits a code", "by rANS");
  const double exact = static_cast<double>(cut.RowBytes({}));
  for (const CodePrice& price : cut.codes) {
    const std::size_t bytes = cut.RowBytes(price.code);
    fmt::print("{:<20} {:>13} {:>7.1f} % {:>10.3f} % {:>9.2g} {:>+7.2f} % {:>+7.2f} % {:>7.1f} %",
               ToString(price.code), bytes, 100 * static_cast<double>(bytes) / exact,
               100 * price.error, price.kl, 100 * price.loss, 100 * price.LossBound(),
               100 * price.same_top);
    if (price.rans_bytes > 0) fmt::print(" {:>11.2f} {:>8.1f}", price.bits, price.rans_bytes);
    fmt::print("\n");
  }
  for (const double limit : {kBalancedLoss, kFastLoss}) {
    const StateCode code = ChooseCode(cut, limit);
    fmt::print("a loss of {:.0f} % at most: {}, {} bytes a token\n", 100 * limit, ToString(code),
               cut.RowBytes(code));
  }
  std::fflush(stdout);
}

}  // namespace

void MeasureCuts::AddTo(Options& options) {
  options.Heading("Cuts between an end and its cloud");
  options
      .Add("--cut", layers_,
           "Also fit codecs for the states that cross a cut before these layers, and measure what "
           "each code loses")
      .SeparatedBy(',')
      .Between(0, 1 << 16)
      .Type("LAYERS");
  options
      .Add("--cut-tokens", tokens_,
           "Number of tokens at the end of the text to measure codes on; nothing is fitted on them "
           "(2048)")
      .Between(std::size_t{16}, kMostTokens)
      .Needs("--cut")
      .Type("N");
  options
      .Add("--cut-fit-tokens", fit_tokens_,
           "Most tokens of the text to fit on, as many as the model is wide at least (16384)")
      .Between(std::size_t{16}, kMostTokens)
      .Needs("--cut")
      .Type("N");
  options.Add("--cut-window", options_.window, "Window of both: tokens that see each other (256)")
      .Between(std::size_t{2}, kMostTokens)
      .Needs("--cut")
      .Type("N");
  options
      .Add("--cut-ranks", percents_,
           "Ranks to measure, as percentages of the model's width (12.5,25,50,75)")
      .SeparatedBy(',')
      .Between(0.01, 100.0)
      .Needs("--cut")
      .Type("LIST");
  options
      .Add("--cut-task-weight", options_.task_weight,
           "How much the fit goes by what is lost of the model's output, 0 to 1 (0); the rest is "
           "what "
           "is lost of the states")
      .Between(0.0, 1.0)
      .Needs("--cut")
      .Type("SHARE");
  options.Add("--cuts-output", output_, "File for the codecs (beside the model)")
      .Needs("--cut")
      .Type("FILE");
}

Status MeasureCuts::CheckModel(const EngineFlags& flags) const {
  TROUPE_ASSIGN_OR_RETURN(const PlannedModel planned, PlanModel(flags.model(), flags.options()));
  for (const std::uint32_t layer : layers_) {
    const Status inside = CheckCutLayer(*planned.config, layer);
    if (!inside.ok()) return InvalidArgument("--cut: {}", inside.message());
  }
  return OkStatus();
}

std::string MeasureCuts::path(const std::string& model) const {
  return output_.empty() ? PathBeside(model, ".cuts.json") : output_;
}

Result<PricedCut> MeasureCuts::MeasureOne(const EngineFlags& flags, std::uint32_t layer,
                                          const Text& text) const {
  CutCalibrationOptions calibration = options_;
  calibration.begin = text.begin;
  calibration.rank_shares.clear();
  for (const double percent : percents_) calibration.rank_shares.push_back(percent / 100);
  const auto fit_on = text.fit_on.first(std::min(fit_tokens_, text.fit_on.size()));
  EngineOptions options = flags.options();
  options.context = static_cast<std::uint32_t>(calibration.window);
  options.sequences = CutCalibrationSequences(calibration);
  options.saves_states = false;
  options.beside = [&calibration, tokens = fit_on.size()](const ModelConfig& config) {
    return CutCalibrationBytes(config, calibration, tokens);
  };
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                          Engine::Open(flags.model(), options));
  ProgressBar bar(fmt::format("cut before layer {}", layer));
  calibration.progress = [&bar](const char*, std::size_t done, std::size_t all) {
    bar.UpdateCount(static_cast<double>(done), all);
  };
  TROUPE_ASSIGN_OR_RETURN(PricedCut cut,
                          CalibrateCut(*engine, layer, fit_on, text.measure_on, calibration));
  cut.text = text.name;
  return cut;
}

Result<CutFile> MeasureCuts::Measure(const EngineFlags& flags, const Text& text,
                                     const std::string& fingerprint, bool table) const {
  const std::string file_path = path(flags.model());
  const std::set<std::uint32_t> layers(layers_.begin(), layers_.end());
  CutFile file{.fingerprint = fingerprint, .cuts = {}};
  for (const std::uint32_t layer : layers) {
    // The engine has ended when the file is written: the budget is for one of them.
    TROUPE_ASSIGN_OR_RETURN(PricedCut cut, MeasureOne(flags, layer, text));
    if (table) PrintCut(cut);
    file.cuts.push_back(std::move(cut));
    const CutFile before = LoadBefore(file_path, fingerprint);
    TROUPE_RETURN_IF_ERROR(WriteWholeText(file_path, EncodeCutFile(WithCutsOf(before, file))));
  }
  return file;
}

Json MeasureCuts::Record(const CutFile& file) {
  Json cuts = Json::Array();
  for (const PricedCut& cut : file.cuts) {
    Json codes = Json::Array();
    for (const CodePrice& price : cut.codes) {
      codes.push_back({{"code", ToString(price.code)},
                       {"bytes_per_token", cut.RowBytes(price.code)},
                       {"states_lost", price.error},
                       {"mean_kl", price.kl},
                       {"loss", price.loss},
                       {"loss_bound", price.LossBound()},
                       {"same_top", price.same_top},
                       {"bits_a_code", price.bits},
                       {"rans_bytes_per_token", price.rans_bytes}});
    }
    cuts.push_back({{"layer", cut.basis.layer},
                    {"massive_channels", cut.basis.kept},
                    {"fitted_on", cut.fitted_on},
                    {"measured_on", cut.measured_on},
                    {"codes", std::move(codes)}});
  }
  return cuts;
}

}  // namespace troupe
