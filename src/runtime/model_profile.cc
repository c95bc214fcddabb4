#include "runtime/model_profile.h"

#include <algorithm>
#include <cmath>

#include "base/json_value.h"
#include "io/text_file.h"
#include "runtime/container_path.h"

namespace troupe {
namespace {

constexpr std::string_view kProfileFormat = "troupe model profile";
constexpr std::uint32_t kProfileVersion = 2;
constexpr Bytes kMostTableBytes = 512_MiB;  // of a file that is read
constexpr std::uint64_t kMost = 1u << 20;

Json ToJson(const ForecastQuality& quality) {
  return {{"tokens", quality.tokens},
          {"similarity", quality.similarity},
          {"expected", quality.expected},
          {"guessed", quality.guessed}};
}

double Share(const JsonValue& json) {
  const double share = json.Number();
  if (share < 0 || share > 1 + 1e-9) json.Fail("a share, 0 to 1");
  return share;
}

ForecastQuality QualityFrom(const JsonValue& json) {
  return {.tokens = json.At("tokens").Count(0, std::uint64_t{1} << 50),
          .similarity = json.At("similarity").Number(),
          .expected = Share(json.At("expected")),
          .guessed = Share(json.At("guessed"))};
}

Json ToJson(const ProfiledLayer& layer) {
  Json json = {{"layer", layer.layer}};
  for (const ForecastPlace place : kForecastPlaces) {
    json[std::string(Name(place))] = ToJson(layer.plain[static_cast<std::size_t>(place)]);
  }
  json["corrected"] = Json::Array();
  for (const ForecastQuality& quality : layer.corrected)
    json["corrected"].push_back(ToJson(quality));
  return json;
}

ProfiledLayer LayerFrom(const JsonValue& json, std::uint32_t layers) {
  ProfiledLayer layer{.layer = static_cast<std::uint32_t>(json.At("layer").Count(0, layers - 1)),
                      .plain = {},
                      .corrected = {}};
  for (const ForecastPlace place : kForecastPlaces) {
    layer.plain[static_cast<std::size_t>(place)] =
        QualityFrom(json.At(std::string(Name(place)).c_str()));
  }
  const JsonValue corrected = json.At("corrected");
  for (std::size_t i = 0; i < layer.corrected.size(); ++i) {
    if (i < corrected.size()) layer.corrected[i] = QualityFrom(corrected.At(i));
  }
  return layer;
}

Json ToJson(const ProfiledShare& share) {
  Json costs = Json::Array();
  for (const ShallowCost& cost : share.costs) {
    costs.push_back(
        {{"layers", cost.layers}, {"misses", cost.misses}, {"uncovered", cost.uncovered}});
  }
  return {{"share", share.share}, {"best", BestShallow(share.costs)}, {"costs", std::move(costs)}};
}

ProfiledShare ShareFrom(const JsonValue& json) {
  ProfiledShare share{.share = Share(json.At("share")), .costs = {}};
  const JsonValue costs = json.At("costs");
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const JsonValue cost = costs.At(i);
    share.costs.push_back({.layers = static_cast<std::uint32_t>(cost.At("layers").Count(0, kMost)),
                           .misses = cost.At("misses").Number(),
                           .uncovered = cost.At("uncovered").Number()});
  }
  return share;
}

// Floats are kept exactly: a double's shortest form that reads back as the same.
Json FloatsToJson(const std::vector<float>& floats) {
  Json json = Json::Array();
  for (const float x : floats) json.push_back(x);
  return json;
}

std::vector<float> FloatsFrom(const JsonValue& json, std::size_t count) {
  if (!json.IsArray() || json.size() != count) json.Fail(fmt::format("{} numbers", count));
  std::vector<float> floats;
  floats.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Json& number = json.raw()[i];  // a JsonValue's place would cost a string for each
    if (!number.IsNumber()) json.At(i).Fail("a number");
    floats.push_back(static_cast<float>(number.AsDouble()));
    if (!std::isfinite(floats.back())) json.At(i).Fail("a number");
  }
  return floats;
}

LearnedForecast LearnedFrom(const JsonValue& json, const ModelProfile& profile) {
  const std::size_t experts = profile.experts;
  return {.layer = static_cast<std::uint32_t>(json.At("layer").Count(0, profile.layers - 1)),
          .ahead = static_cast<std::uint32_t>(json.At("ahead").Count(1, kMostLayersAhead)),
          .table = FloatsFrom(json.At("table"), LearnedForecast::TableSize(experts)),
          .offset = FloatsFrom(json.At("offset"), experts)};
}

SeenPaths PathsFrom(const JsonValue& json, const ModelProfile& profile) {
  const std::size_t experts = profile.experts;
  SeenPaths paths{
      .layer = static_cast<std::uint32_t>(json.At("layer").Count(1, profile.layers - 1)),
      .follows = FloatsFrom(json.At("follows"), experts * experts)};
  if (std::ranges::any_of(paths.follows, [](float count) { return count < 0; })) {
    json.At("follows").Fail("counts");
  }
  return paths;
}

ModelProfile ProfileFrom(const JsonValue& json) {
  if (!json.IsObject() || !json.Has("format") || json.At("format").raw() != kProfileFormat) {
    JsonValue::Refuse(fmt::format("not a {}", kProfileFormat));
  }
  if (json.At("version").raw() != kProfileVersion)
    json.At("version").Fail(fmt::format("{}", kProfileVersion));
  ModelProfile profile{
      .fingerprint = json.At("model").String(),
      .text = json.At("text").String(),
      .tokens = json.At("tokens").Count(0, std::uint64_t{1} << 50),
      .layers = static_cast<std::uint32_t>(json.At("layers").Count(1, kMost)),
      .experts = static_cast<std::uint32_t>(json.At("experts").Count(1, 1u << 16))};
  const JsonValue forecasts = json.At("forecasts"), shallow = json.At("shallow"),
                  learned = json.At("learned"), paths = json.At("paths");
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    profile.forecasts.push_back(LayerFrom(forecasts.At(i), profile.layers));
  }
  for (std::size_t i = 0; i < shallow.size(); ++i) {
    profile.shallow.push_back(ShareFrom(shallow.At(i)));
  }
  for (std::size_t i = 0; i < learned.size(); ++i) {
    profile.learned.push_back(LearnedFrom(learned.At(i), profile));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    profile.paths.push_back(PathsFrom(paths.At(i), profile));
  }
  return profile;
}

}  // namespace

std::uint32_t ModelProfile::ShallowLayersFor(double share) const {
  const auto nearest = std::ranges::min_element(
      shallow, {}, [share](const ProfiledShare& s) { return std::abs(s.share - share); });
  return nearest == shallow.end() ? 0 : BestShallow(nearest->costs);
}

std::string ProfilePathFor(std::string_view model_path) {
  return PathBeside(model_path, ".profile.json");
}

Status SaveProfile(const ModelProfile& profile, const std::string& path) {
  Json json = {
      {"format", kProfileFormat},   {"version", kProfileVersion}, {"model", profile.fingerprint},
      {"text", profile.text},       {"tokens", profile.tokens},   {"layers", profile.layers},
      {"experts", profile.experts}, {"forecasts", Json::Array()}, {"shallow", Json::Array()},
      {"learned", Json::Array()},   {"paths", Json::Array()}};
  for (const ProfiledLayer& layer : profile.forecasts) json["forecasts"].push_back(ToJson(layer));
  for (const ProfiledShare& share : profile.shallow) json["shallow"].push_back(ToJson(share));
  for (const LearnedForecast& learned : profile.learned) {
    json["learned"].push_back({{"layer", learned.layer},
                               {"ahead", learned.ahead},
                               {"offset", FloatsToJson(learned.offset)},
                               {"table", FloatsToJson(learned.table)}});
  }
  for (const SeenPaths& paths : profile.paths) {
    json["paths"].push_back({{"layer", paths.layer}, {"follows", FloatsToJson(paths.follows)}});
  }
  return WriteWholeText(path, json.Dump() + "\n");
}

Result<ModelProfile> LoadProfile(const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path, kMostTableBytes));
  return ReadJson<ModelProfile>(path, text, ProfileFrom);
}

}  // namespace troupe
