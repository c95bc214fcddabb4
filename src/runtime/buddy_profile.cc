#include "runtime/buddy_profile.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>

#include "base/check.h"
#include "base/json_value.h"
#include "io/text_file.h"
#include "runtime/container_path.h"
#include "store/model_fingerprint.h"

namespace troupe {
namespace {

constexpr std::string_view kBuddiesFormat = "troupe buddies";
constexpr std::uint32_t kBuddiesVersion = 1;
constexpr Bytes kMostProfileBytes = 512_MiB;  // of a file that is read
constexpr std::uint64_t kMostLayers = 1u << 16, kMostExperts = 1u << 16;
constexpr std::uint64_t kMostLists = 1u << 20;  // of all layers: each takes memory, empty or not
constexpr std::size_t kPercentiles = 100 / BuddyProfile::kPercentStep + 1;
constexpr double kRounding = 1e-6;  // of sums of shares, which are floats

Json ToJson(const BuddyLayer& layer, const BuddyLists& buddies) {
  Json lists = Json::Array();
  for (std::uint32_t e = 0; e < buddies.grid.experts; ++e) {
    Json list = Json::Array();
    for (const Buddy& buddy : buddies.Of({layer.layer, e})) {
      list.push_back(Json::Array({buddy.expert, buddy.share}));
    }
    lists.push_back(std::move(list));
  }
  return {{"layer", layer.layer},
          {"activations", layer.activations},
          {"entropy", layer.entropy},
          {"buddies", std::move(lists)}};
}

std::vector<double> NumbersIn(const JsonValue& json, std::size_t count, double most) {
  if (!json.IsArray() || json.size() != count) json.Fail(fmt::format("{} numbers", count));
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = json.At(i).Number(0, most);
  return numbers;
}

std::vector<Buddy> ListIn(const JsonValue& json, const BuddyProfile& profile) {
  if (!json.IsArray() || json.size() > profile.options.most) {
    json.Fail(fmt::format("a list of {} buddies at most", profile.options.most));
  }
  std::vector<Buddy> list(json.size());
  double sum = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue pair = json.At(i);
    if (!pair.IsArray() || pair.size() != 2) pair.Fail("an expert and its share");
    list[i].expert = static_cast<std::uint32_t>(pair.At(std::size_t{0}).Count(0, kMostExperts));
    list[i].share = static_cast<float>(pair.At(std::size_t{1}).Number(0, 1));
    sum += list[i].share;
  }
  if (sum > 1 + kRounding) json.Fail("shares whose sum is at most 1");
  return list;
}

void ReadLayer(const JsonValue& json, BuddyProfile& profile) {
  const ExpertGrid grid = profile.buddies.grid;
  const std::uint64_t least = profile.layers.empty() ? 0 : profile.layers.back().layer + 1;
  BuddyLayer layer{
      .layer = static_cast<std::uint32_t>(json.At("layer").Count(least, grid.layers - 1)),
      .activations =
          NumbersIn(json.At("activations"), grid.experts, static_cast<double>(profile.tokens)),
      .entropy = NumbersIn(json.At("entropy"), kPercentiles, 1)};
  if (!std::ranges::is_sorted(layer.entropy)) {
    json.At("entropy").Fail("percentiles that do not fall");
  }
  const JsonValue lists = json.At("buddies");
  if (!lists.IsArray() || lists.size() != grid.experts) {
    lists.Fail(fmt::format("{} lists", grid.experts));
  }
  for (std::uint32_t e = 0; e < grid.experts; ++e) {
    std::vector<Buddy> list = ListIn(lists.At(e), profile);
    if (!list.empty() && !(layer.activations[e] > 0)) {
      lists.At(e).Fail("no buddies: nobody chose the expert");
    }
    profile.buddies.lists[grid.Index({layer.layer, e})] = std::move(list);
  }
  profile.layers.push_back(std::move(layer));
}

BuddyProfile BuddiesFrom(const JsonValue& json) {
  if (!json.IsObject() || !json.Has("format") || json.At("format").raw() != kBuddiesFormat) {
    JsonValue::Refuse(fmt::format("not a file of {}", kBuddiesFormat));
  }
  if (json.At("version").raw() != kBuddiesVersion)
    json.At("version").Fail(fmt::format("{}", kBuddiesVersion));
  BuddyProfile profile;
  profile.fingerprint = json.At("model").String();
  profile.text = json.At("text").String();
  profile.tokens = json.At("tokens").Count(1, std::uint64_t{1} << 50);
  const ExpertGrid grid{
      .layers = static_cast<std::uint32_t>(json.At("layers").Count(1, kMostLayers)),
      .experts = static_cast<std::uint32_t>(json.At("experts").Count(1, kMostExperts))};
  if (grid.Count() > kMostLists) {
    json.At("experts").Fail(
        fmt::format("with {} layers at most {}", grid.layers, kMostLists / grid.layers));
  }
  profile.top_k = static_cast<std::uint32_t>(json.At("top_k").Count(1, grid.experts));
  const JsonValue warm_up = json.At("warm_up"), made_by = json.At("made_by");
  profile.warm_up = {
      .tokens = static_cast<std::uint32_t>(warm_up.At("tokens").Count(0, std::uint64_t{1} << 30)),
      .least = warm_up.At("least").Number(0, 1)};
  profile.options.coverage = made_by.At("coverage").Number(0, 1);
  profile.options.most = static_cast<std::uint32_t>(made_by.At("most").Count(1, kMostExperts));
  profile.options.smoothing = made_by.At("smoothing").Number(0, 1e9);
  profile.options.weighted = made_by.At("weighted").Flag();
  const JsonValue layers = json.At("by_layer");
  if (!layers.IsArray() || layers.size() == 0 || layers.size() > grid.layers) {
    layers.Fail(fmt::format("1 to {} layers", grid.layers));
  }
  profile.buddies = {.grid = grid, .lists = std::vector<std::vector<Buddy>>(grid.Count())};
  for (std::size_t i = 0; i < layers.size(); ++i) ReadLayer(layers.At(i), profile);
  return profile;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::vector<double> BuddyProfile::EntropyAt(std::uint32_t percent) const {
  TROUPE_CHECK(percent <= 100 && percent % kPercentStep == 0);
  std::vector<double> found(buddies.grid.layers, 1.0);
  for (const BuddyLayer& layer : layers) found[layer.layer] = layer.entropy[percent / kPercentStep];
  return found;
}

std::string BuddiesPathFor(std::string_view model_path) {
  return PathBeside(model_path, ".buddies.json");
}

Status SaveBuddies(const BuddyProfile& profile, const std::string& path) {
  Json json = {{"format", kBuddiesFormat},
               {"version", kBuddiesVersion},
               {"model", profile.fingerprint},
               {"text", profile.text},
               {"tokens", profile.tokens},
               {"layers", profile.buddies.grid.layers},
               {"experts", profile.buddies.grid.experts},
               {"top_k", profile.top_k},
               {"warm_up", {{"tokens", profile.warm_up.tokens}, {"least", profile.warm_up.least}}},
               {"made_by",
                {{"coverage", profile.options.coverage},
                 {"most", profile.options.most},
                 {"smoothing", profile.options.smoothing},
                 {"weighted", profile.options.weighted}}},
               {"by_layer", Json::Array()}};
  for (const BuddyLayer& layer : profile.layers) {
    json["by_layer"].push_back(ToJson(layer, profile.buddies));
  }
  return WriteWholeText(path, json.Dump() + "\n");
}

Result<BuddyProfile> LoadBuddies(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kMostProfileBytes));
  TROUPE_ASSIGN_OR_RETURN(BuddyProfile profile, ReadJson<BuddyProfile>(path, text, BuddiesFrom));
  if (Status status = Validate(profile.buddies); !status.ok()) {
    return std::move(status).WithContext(path);
  }
  return profile;
}

Result<SubstitutionMaterial> LoadMaterial(std::string_view chain, const GgufModel& model,
                                          ExpertGrid grid, const std::string& path) {
  if (!NeedsBuddies(chain)) return SubstitutionMaterial();
  const std::string from = path.empty() ? BuddiesPathFor(model.path()) : path;
  if (!Exists(from)) {
    return Error(Code::kNotFound,
                 "{}: no such file, but '{}' needs the model's buddies; `troupe calibrate {} "
                 "--text FILE` finds them",
                 from, chain, model.path());
  }
  TROUPE_ASSIGN_OR_RETURN(BuddyProfile profile, LoadBuddies(from));
  TROUPE_ASSIGN_OR_RETURN(const ModelFingerprint fingerprint, FingerprintModel(model));
  if (profile.fingerprint != ToString(fingerprint)) {
    return InvalidArgument(
        "{}: made for another model; `troupe calibrate {} --text FILE` makes it "
        "anew",
        from, model.path());
  }
  const ExpertGrid found = profile.buddies.grid;
  if (found.layers != grid.layers || found.experts != grid.experts) {
    return DataLoss("{}: {} layers of {} experts, {} of {} expected", from, found.layers,
                    found.experts, grid.layers, grid.experts);
  }
  SubstitutionMaterial material;
  material.tau_by_layer = profile.EntropyAt(BuddyProfile::kTauPercentile);
  material.buddies = std::make_shared<const BuddyLists>(std::move(profile.buddies));
  return material;
}

}  // namespace troupe
