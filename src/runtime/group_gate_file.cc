#include "runtime/group_gate_file.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json_value.h"
#include "expert/substitution/link_options.h"
#include "io/text_file.h"
#include "model/group_router.h"
#include "runtime/container_path.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr std::string_view kGroupsFormat = "troupe group gate";
constexpr std::uint32_t kGroupsVersion = 1;
constexpr Bytes kMostGroupsBytes = 512_MiB;  // of a file that is read
constexpr std::uint64_t kMostGateLayers = 1u << 16, kMostGateWidth = 1u << 20;
constexpr double kMostDivergence = 1e9;

Json ToJson(const GateAgreement& agreement) {
  Json looked = Json::Array();
  for (const LookedAgreement& of : agreement.by_looked) {
    looked.push_back(
        {{"joint", of.joint}, {"product", of.product}, {"best_groups", of.best_groups}});
  }
  return {{"divergence", agreement.divergence},
          {"of_nothing", agreement.of_nothing},
          {"by_looked", std::move(looked)}};
}

Json ToJson(const std::vector<float>& numbers) {
  Json json = Json::Array();
  for (const float number : numbers) json.push_back(number);
  return json;
}

Json ToJson(const GroupGateLayer& layer, const GateAgreement& agreement) {
  Json groups = Json::Array();
  for (const auto& group : layer.groups) groups.push_back(group);
  return {{"layer", layer.layer},
          {"groups", std::move(groups)},
          {"weights", ToJson(layer.weights)},
          {"bias", ToJson(layer.bias)},
          {"agreement", ToJson(agreement)}};
}

std::vector<float> GateNumbers(const JsonValue& json, std::size_t count) {
  if (!json.IsArray() || json.size() != count) json.Fail(fmt::format("{} numbers", count));
  std::vector<float> numbers;
  numbers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(json.At(i).Number()));
  }
  return numbers;
}

ExpertGroups GroupsIn(const JsonValue& json, const GroupGate& gate) {
  if (!json.IsArray() || json.size() != gate.groups) {
    json.Fail(fmt::format("{} groups", gate.groups));
  }
  ExpertGroups groups(gate.groups);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const JsonValue group = json.At(g);
    if (!group.IsArray() || group.size() > gate.experts) group.Fail("a list of experts");
    for (std::size_t i = 0; i < group.size(); ++i) {
      groups[g].push_back(
          static_cast<std::uint32_t>(group.At(i).Count(0, std::uint64_t{gate.experts} - 1)));
    }
  }
  return groups;
}

GateAgreement AgreementIn(const JsonValue& json, const GroupGate& gate) {
  GateAgreement agreement{.divergence = json.At("divergence").Number(0, kMostDivergence),
                          .of_nothing = json.At("of_nothing").Number(0, kMostDivergence)};
  const JsonValue looked = json.At("by_looked");
  if (!looked.IsArray() || looked.size() != gate.groups) {
    looked.Fail(fmt::format("{} numbers of groups", gate.groups));
  }
  for (std::size_t i = 0; i < looked.size(); ++i) {
    const JsonValue of = looked.At(i);
    agreement.by_looked.push_back({.joint = of.At("joint").Number(0, 1),
                                   .product = of.At("product").Number(0, 1),
                                   .best_groups = of.At("best_groups").Number(0, 1)});
  }
  return agreement;
}

GroupGateFile GroupGateFrom(const JsonValue& json) {
  if (!json.IsObject() || !json.Has("format") || json.At("format").raw() != kGroupsFormat) {
    JsonValue::Refuse(fmt::format("not a file of a {}", kGroupsFormat));
  }
  if (json.At("version").raw() != kGroupsVersion)
    json.At("version").Fail(fmt::format("{}", kGroupsVersion));
  const auto count = [&json](const char* key, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(json.At(key).Count(least, most));
  };
  GroupGateFile file{.fingerprint = json.At("model").String(),
                     .text = json.At("text").String(),
                     .tokens = json.At("tokens").Count(1, std::uint64_t{1} << 50),
                     .model_layers = count("layers", 1, kMostGateLayers)};
  file.gate.width = count("width", 1, kMostGateWidth);
  file.gate.experts = count("experts", 2, kMaxExperts);
  file.gate.groups = count("groups", 2, file.gate.experts);
  file.top_k = count("top_k", 1, file.gate.experts);
  file.looked = count("looked", 1, file.gate.groups);
  const JsonValue layers = json.At("by_layer");
  if (!layers.IsArray() || layers.size() == 0 || layers.size() > file.model_layers) {
    layers.Fail(fmt::format("1 to {} layers", file.model_layers));
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const JsonValue layer = layers.At(i);
    const std::size_t weights = std::size_t{file.gate.groups} * file.gate.width;
    file.gate.layers.push_back({.layer = static_cast<std::uint32_t>(layer.At("layer").Count(
                                    0, std::uint64_t{file.model_layers} - 1)),
                                .groups = GroupsIn(layer.At("groups"), file.gate),
                                .weights = GateNumbers(layer.At("weights"), weights),
                                .bias = GateNumbers(layer.At("bias"), file.gate.groups)});
    file.agreement.push_back(AgreementIn(layer.At("agreement"), file.gate));
  }
  return file;
}

// Number and kind of layers, and all sizes.
Status CheckSuits(const GroupGate& gate, std::uint32_t model_layers, const ModelConfig& config) {
  std::vector<std::uint32_t> layers;
  for (const GroupGateLayer& layer : gate.layers) layers.push_back(layer.layer);
  std::vector<std::uint32_t> expected;
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) {
    if (config.IsMoeLayer(layer)) expected.push_back(layer);
  }
  const std::uint32_t experts = config.moe.routing.experts;
  if (model_layers != config.layers || layers != expected || gate.width != config.width ||
      gate.experts != experts) {
    return DataLoss(
        "gates of {} of {} layers, of width {}, for {} experts; {} of {}, {} and {} expected",
        layers.size(), model_layers, gate.width, gate.experts, expected.size(), config.layers,
        config.width, experts);
  }
  return OkStatus();
}

}  // namespace

GateAgreement GroupGateFile::MeanAgreement() const {
  GateAgreement mean;
  mean.by_looked.resize(gate.groups);
  const auto layers = static_cast<double>(agreement.size());
  for (const GateAgreement& of : agreement) {
    mean.divergence += of.divergence / layers;
    mean.of_nothing += of.of_nothing / layers;
    for (std::size_t i = 0; i < of.by_looked.size(); ++i) {
      mean.by_looked[i].joint += of.by_looked[i].joint / layers;
      mean.by_looked[i].product += of.by_looked[i].product / layers;
      mean.by_looked[i].best_groups += of.by_looked[i].best_groups / layers;
    }
  }
  return mean;
}

std::string GroupsPathFor(std::string_view model_path) {
  return PathBeside(model_path, ".groups.json");
}

Status SaveGroups(const GroupGateFile& groups, const std::string& path) {
  Json json = {{"format", kGroupsFormat},      {"version", kGroupsVersion},
               {"model", groups.fingerprint},  {"text", groups.text},
               {"tokens", groups.tokens},      {"layers", groups.model_layers},
               {"width", groups.gate.width},   {"experts", groups.gate.experts},
               {"groups", groups.gate.groups}, {"top_k", groups.top_k},
               {"looked", groups.looked},      {"by_layer", Json::Array()}};
  for (std::size_t i = 0; i < groups.gate.layers.size(); ++i) {
    json["by_layer"].push_back(ToJson(groups.gate.layers[i], groups.agreement[i]));
  }
  return WriteWholeText(path, json.Dump() + "\n");
}

Result<GroupGateFile> LoadGroups(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kMostGroupsBytes));
  TROUPE_ASSIGN_OR_RETURN(GroupGateFile file, ReadJson<GroupGateFile>(path, text, GroupGateFrom));
  if (Status status = Validate(file.gate); !status.ok()) {
    return std::move(status).WithContext(path);
  }
  return file;
}

Result<GateChoice> ParseGate(std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(LinkOptions options, LinkOptions::Read(text, "gate"));
  GateChoice choice;
  if (options.name() == "groups") {
    choice.by_groups = true;
    choice.looked = options.Whole("looked", 0, 1, kMaxExperts);
    const bool joint = options.Is("fusion", "joint"), product = options.Is("fusion", "product");
    if (options.Has("fusion") && !joint && !product) {
      return InvalidArgument("gate '{}': fusion is joint or product", text);
    }
    if (product) choice.fusion = GroupFusion::kProduct;
  } else if (options.name() != "exact") {
    return InvalidArgument("gate '{}': exact, or groups with options expected", text);
  }
  TROUPE_RETURN_IF_ERROR(options.Finish());
  return choice;
}

std::string Describe(const LoadedGate& gate) {
  const LookedAgreement found = gate.file.MeanAgreement().by_looked[gate.choice.looked - 1];
  const bool joint = gate.choice.fusion == GroupFusion::kJoint;
  return fmt::format(
      "not exact: a group gate looks into {} of {} groups of experts; when it was made it found "
      "{:.1f} % of the router's experts",
      gate.choice.looked, gate.file.gate.groups, 100 * (joint ? found.joint : found.product));
}

Result<LoadedGate> LoadGate(const GateOptions& options, const GgufModel& model,
                            const ModelConfig& config) {
  if (Status status = GroupRouter::CheckModel(config); !status.ok()) {
    return std::move(status).WithContext(model.path());
  }
  const std::string path = options.file.empty() ? GroupsPathFor(model.path()) : options.file;
  const std::string command =
      fmt::format("`troupe calibrate {} --text FILE --groups K`", model.path());
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Error(Code::kNotFound,
                 "{}: no such file, but --gate {} needs the model's groups; {} "
                 "finds them",
                 path, ToString(options.choice), command);
  }
  TROUPE_ASSIGN_OR_RETURN(GroupGateFile file, LoadGroups(path));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  if (file.fingerprint != ToString(fingerprint)) {
    return InvalidArgument("{}: made for another model; {} makes it anew", path, command);
  }
  if (Status status = CheckSuits(file.gate, file.model_layers, config); !status.ok()) {
    return std::move(status).WithContext(path);
  }
  LoadedGate loaded{.choice = options.choice, .file = std::move(file)};
  GateChoice& choice = loaded.choice;
  if (choice.looked == 0) choice.looked = loaded.file.looked;
  const GroupGate& gate = loaded.file.gate;
  const std::uint32_t least = gate.LeastLooked(config.moe.routing.top_k);
  // Looking into all of them is the router with more work, unless their products decide.
  const std::uint32_t most = choice.fusion == GroupFusion::kProduct ? gate.groups : gate.groups - 1;
  if (choice.looked < least || choice.looked > most) {
    return InvalidArgument(
        "--gate {}: looks into {} of {} groups, {} to {} expected: a token uses {} experts",
        ToString(options.choice), choice.looked, gate.groups, least, most,
        config.moe.routing.top_k);
  }
  return loaded;
}

}  // namespace troupe
