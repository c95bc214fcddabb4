#include "troupe/measure_groups.h"

#include <algorithm>

#include "lab/quality_measurement.h"
#include "troupe/options.h"
#include "troupe/progress.h"

namespace troupe {
namespace {

// 1, 2, 4, ..., from the least that hold enough experts, and the usual number; all below all
// groups.
std::vector<std::uint32_t> LookedToMeasure(const GroupGateFile& file) {
  std::vector<std::uint32_t> looked = {file.looked};
  const std::uint32_t least = file.gate.LeastLooked(file.top_k);
  for (std::uint32_t l = least; l < file.gate.groups; l *= 2) looked.push_back(l);
  std::ranges::sort(looked);
  looked.erase(std::unique(looked.begin(), looked.end()), looked.end());
  return looked;
}

void PrintLearned(const GroupGateFile& file, const std::string& path) {
  const GateAgreement mean = file.MeanAgreement();
  fmt::print(
      "{} groups of {} experts, learned from {} tokens: what the gate says of groups diverges by "
      "{:.3f} nats from the router, knowing nothing by {:.3f}\n",
      file.gate.groups, file.gate.experts, file.tokens, mean.divergence, mean.of_nothing);
  fmt::print("of the router's experts found, by the number of groups looked into:\n");
  fmt::print("groups   joint   product   with the best groups\n");
  for (std::size_t i = 0; i < mean.by_looked.size(); ++i) {
    const LookedAgreement& of = mean.by_looked[i];
    fmt::print("{:>6} {:5.1f} % {:7.1f} % {:9.1f} %{}\n", i + 1, 100 * of.joint, 100 * of.product,
               100 * of.best_groups, i + 1 == file.looked ? "   usual" : "");
  }
  fmt::print("left in {}\n", path);
}

void PrintHead(std::size_t tokens) {
  fmt::print("\n{} other tokens, one at a time; times by the exact gate -> by groups\n", tokens);
  fmt::print(
      "groups   KL (95 %)                    perplexity   same top-1   router rows   gate us a "
      "token      token ms\n");
}

void Print(const MeasuredGate& gate) {
  const Comparison& to = *gate.evaluation.comparison;
  fmt::print(
      "{:>6}   {:.5f} ({:.5f} to {:.5f})   {:+8.2f} %   {:8.1f} %   {:9.1f} %   {:7.1f} -> "
      "{:<7.1f} "
      "{:7.3f} -> {:.3f}\n",
      gate.choice.looked, to.kl.mean, to.kl.least, to.kl.most, 100 * (to.perplexity_ratio.mean - 1),
      100 * to.top1_agreement.mean,
      100.0 * static_cast<double>(gate.routing.rows_multiplied) /
          static_cast<double>(gate.routing.rows_of_router),
      1e6 * gate.exact.gate, 1e6 * gate.groups.gate, 1e3 * gate.exact.token,
      1e3 * gate.groups.token);
}

Json ToJson(const MeasuredGate& gate) {
  const Comparison& to = *gate.evaluation.comparison;
  return {{"gate", ToString(gate.choice)},
          {"looked", gate.choice.looked},
          {"tokens", gate.evaluation.tokens},
          {"mean_kl", to.kl.mean},
          {"kl_least", to.kl.least},
          {"kl_most", to.kl.most},
          {"loss", to.perplexity_ratio.mean - 1},
          {"top1_agreement", to.top1_agreement.mean},
          {"decisions", gate.routing.decisions},
          {"rows_multiplied", gate.routing.rows_multiplied},
          {"rows_of_router", gate.routing.rows_of_router},
          {"exact_gate_s_per_token", gate.exact.gate},
          {"gate_s_per_token", gate.groups.gate},
          {"exact_s_per_token", gate.exact.token},
          {"s_per_token", gate.groups.token}};
}

}  // namespace

void MeasureGroups::AddTo(Options& options) {
  options.Heading("Group gate");
  options
      .Add("--groups", groups_,
           "Also divide the experts of each layer into K groups and learn a gate of them, for "
           "--gate groups; a multiple of 16 experts in a group saves most")
      .Between(2u, kMaxExperts)
      .Type("K");
  options
      .Add("--groups-tokens", recorded_,
           "Most tokens of the text to learn the group gate from (4096)")
      .Between(kLeastSamples, kMostTokens)
      .Needs("--groups")
      .Type("N");
  options
      .Add("--groups-scored", scored_,
           "Number of tokens at the end of the text to measure the group gate on; nothing is "
           "learned from them (1024)")
      .Between(std::size_t{16}, kMostTokens)
      .Needs("--groups")
      .Type("N");
  options.Add("--groups-output", output_, "File for the group gate (beside the model)")
      .Needs("--groups")
      .Type("FILE");
}

std::string MeasureGroups::PathFor(const std::string& model) const {
  return output_.empty() ? GroupsPathFor(model) : output_;
}

GroupCalibrationOptions MeasureGroups::OptionsFor(std::size_t tokens) const {
  return {.groups = groups_, .most_tokens = std::min(recorded_, tokens)};
}

Bytes MeasureGroups::TakesBeside(const ModelConfig& config, std::size_t text_bytes) const {
  return wanted() ? GroupCalibrationBytes(config, OptionsFor(text_bytes)) : Bytes();
}

Status MeasureGroups::CheckModel(const Engine& engine) const {
  if (!wanted()) return OkStatus();
  Status status = CheckGroupsFor(engine.config(), groups_);
  return status.ok() ? status : std::move(status).WithContext(engine.path() + ": --groups");
}

Result<GroupGateFile> MeasureGroups::Learn(Session& session, Engine& engine,
                                           std::span<const TokenId> text,
                                           std::optional<TokenId> begin) const {
  ProgressBar bar("recording");
  GroupCalibrationOptions options = OptionsFor(text.size());
  options.begin = begin;
  options.progress = [&bar](std::size_t done, std::size_t all) {
    bar.UpdateCount(static_cast<double>(done), all);
  };
  return CalibrateGroups(session, engine, text, options);
}

Result<std::vector<MeasuredGate>> MeasureGroups::Measure(const EngineFlags& flags,
                                                         const GroupGateFile& file,
                                                         const Text& text, bool table) const {
  EngineOptions options = flags.options();
  options.least_context = static_cast<std::uint32_t>(std::min(window_, text.ids.size()) + 1);
  EvaluationOptions evaluation{.window = window_, .begin = text.begin};
  const std::string logits = PathFor(flags.model()) + ".exact-logits";
  {
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Open(flags.model(), options));
    evaluation.window = std::min<std::size_t>(window_, engine->plan().context());
    TROUPE_RETURN_IF_ERROR(SaveExactLogits(*engine, text.ids, evaluation, logits).status());
  }
  TROUPE_ASSIGN_OR_RETURN(const LogitsReader reference, LogitsReader::OpenAndUnlink(logits));
  if (table) PrintHead(text.ids.size());
  std::vector<MeasuredGate> measured;
  for (const std::uint32_t looked : LookedToMeasure(file)) {
    options.offload.gate = {.choice = {.by_groups = true, .looked = looked},
                            .file = PathFor(flags.model())};
    TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<Engine> engine,
                            Engine::Open(flags.model(), options));
    ProgressBar bar("measuring");
    const auto progress = [&bar](std::size_t done, std::size_t all) {
      bar.UpdateCount(static_cast<double>(done), all);
    };
    TROUPE_ASSIGN_OR_RETURN(MeasuredGate gate,
                            MeasureGate(*engine, text.ids, reference, evaluation, progress));
    bar.Clear();
    if (table) Print(gate);
    measured.push_back(std::move(gate));
  }
  return measured;
}

Result<Json> MeasureGroups::SaveAndMeasure(const EngineFlags& flags, const GroupGateFile& file,
                                           const Text& text, bool table) const {
  const std::string path = PathFor(flags.model());
  TROUPE_RETURN_IF_ERROR(SaveGroups(file, path));
  if (table) PrintLearned(file, path);
  TROUPE_ASSIGN_OR_RETURN(const std::vector<MeasuredGate> measured,
                          Measure(flags, file, text, table));
  const GateAgreement mean = file.MeanAgreement();
  Json found = Json::Array(), gates = Json::Array();
  for (const LookedAgreement& of : mean.by_looked) {
    found.push_back(
        {{"joint", of.joint}, {"product", of.product}, {"best_groups", of.best_groups}});
  }
  for (const MeasuredGate& gate : measured) gates.push_back(ToJson(gate));
  return Json{{"file", path},
              {"groups", file.gate.groups},
              {"tokens", file.tokens},
              {"looked", file.looked},
              {"divergence", mean.divergence},
              {"divergence_of_nothing", mean.of_nothing},
              {"found", std::move(found)},
              {"measured", std::move(gates)}};
}

}  // namespace troupe
