#include "trace/trace_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_value.h"
#include "base/printable.h"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 4> kScoreNames = {"none", "softmax", "sigmoid",
                                                         "chosen-softmax"};
constexpr std::array<std::string_view, 2> kTypeNames = {"f32", "f16"};
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;

template <std::size_t N>
std::size_t IndexOf(const std::array<std::string_view, N>& names, const JsonValue& json) {
  const auto found = std::ranges::find(names, json.String());
  if (found == names.end()) json.Fail(fmt::format("one of {}", fmt::join(names, ", ")));
  return static_cast<std::size_t>(found - names.begin());
}

std::string TextOr(const JsonValue& json, const char* key) {
  return json.Has(key) ? Printable(json.At(key).String()) : std::string();
}

RecordedCache ReadCache(const JsonValue& json) {
  const auto count = [&](const char* key) {
    return static_cast<std::uint32_t>(json.At(key).Count(0, 1u << 30));
  };
  return {.slots = count("slots"),
          .spare = count("spare"),
          .per_layer = json.At("per_layer").Flag(),
          .shallow = count("shallow"),
          .policy = Printable(json.At("policy").String()),
          .predictor = Printable(json.At("predictor").String())};
}

TraceHeader ReadHeader(const JsonValue& json) {
  TraceHeader header;
  const auto count = [&](const char* key, std::uint32_t most) {
    return static_cast<std::uint32_t>(json.At(key).Count(1, most));
  };
  header.model = Printable(json.At("model").String());
  header.fingerprint = TextOr(json, "fingerprint");
  header.layers = count("layers", kMaxTraceLayers);
  const JsonValue moe = json.At("moe_layers");
  for (std::size_t i = 0; i < moe.size(); ++i) {
    header.moe_layers.push_back(static_cast<std::uint32_t>(moe.At(i).Count(0, kMaxTraceLayers)));
  }
  header.experts = count("experts", kMaxTraceExperts);
  header.top_k = count("top_k", kMaxTraceTopK);
  header.scores = static_cast<ScoreKind>(IndexOf(kScoreNames, json.At("scores")));
  if (json.Has("score_type")) {
    header.score_type = static_cast<ScoreType>(IndexOf(kTypeNames, json.At("score_type")));
  }
  if (json.Has("all_scores")) header.all_scores = json.At("all_scores").Flag();
  if (json.Has("expert_bytes")) {
    const JsonValue bytes = json.At("expert_bytes");
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      header.expert_bytes.push_back(bytes.At(i).Count(1, kMostBytes));
    }
  }
  header.expert_shape = TextOr(json, "expert_shape");
  if (json.Has("dense_bytes")) header.dense_bytes = json.At("dense_bytes").Count(0, kMostBytes);
  header.origin = TextOr(json, "origin");
  header.licence = TextOr(json, "licence");
  if (json.Has("cache")) header.cache = ReadCache(json.At("cache"));
  header.ends = json.Has("ends") && json.At("ends").Flag();
  if (json.Has("sequences")) header.sequences = count("sequences", kMaxTraceSequences);
  return header;
}

}  // namespace

std::string_view Name(ScoreKind kind) { return kScoreNames[static_cast<std::size_t>(kind)]; }

Status Validate(const TraceHeader& header) {
  if (header.layers == 0 || header.layers > kMaxTraceLayers || header.experts == 0 ||
      header.experts > kMaxTraceExperts) {
    return InvalidArgument("{} layers of {} experts, expected 1 to {} of 1 to {}", header.layers,
                           header.experts, kMaxTraceLayers, kMaxTraceExperts);
  }
  if (header.top_k == 0 || header.top_k > std::min(header.experts, kMaxTraceTopK)) {
    return InvalidArgument("{} experts a token, expected 1 to {}", header.top_k,
                           std::min(header.experts, kMaxTraceTopK));
  }
  if (header.moe_layers.empty()) return InvalidArgument("no layers with experts");
  for (std::size_t i = 0; i < header.moe_layers.size(); ++i) {
    const std::uint32_t layer = header.moe_layers[i];
    if (layer < header.layers && (i == 0 || layer > header.moe_layers[i - 1])) continue;
    return InvalidArgument(
        "layer {} at place {} of those with experts, expected rising ones below "
        "{}",
        layer, i, header.layers);
  }
  if (!header.expert_bytes.empty() && header.expert_bytes.size() != header.moe_layers.size()) {
    return InvalidArgument("{} sizes of experts, expected none or {}", header.expert_bytes.size(),
                           header.moe_layers.size());
  }
  if (header.sequences == 0 || header.sequences > kMaxTraceSequences) {
    return InvalidArgument("{} sequences at once, expected 1 to {}", header.sequences,
                           kMaxTraceSequences);
  }
  if (header.all_scores && header.scores == ScoreKind::kNone) {
    return InvalidArgument("scores of all experts and of none, expected a kind of score");
  }
  return OkStatus();
}

Status SameModel(const TraceHeader& a, const TraceHeader& b) {
  if (a.layers != b.layers || a.experts != b.experts || a.top_k != b.top_k ||
      a.moe_layers != b.moe_layers) {
    return InvalidArgument(
        "{} layers, {} of them with {} experts of which a token takes {}; expected {}, {}, {} and "
        "{}",
        b.layers, b.moe_layers.size(), b.experts, b.top_k, a.layers, a.moe_layers.size(), a.experts,
        a.top_k);
  }
  if (!a.fingerprint.empty() && !b.fingerprint.empty()) {
    if (a.fingerprint == b.fingerprint) return OkStatus();
    return InvalidArgument("model '{}' ({}), expected '{}' ({})", b.model, b.fingerprint, a.model,
                           a.fingerprint);
  }
  if (a.model != b.model) {
    return InvalidArgument("model '{}', expected '{}'", b.model, a.model);
  }
  return OkStatus();
}

std::string ToJson(const TraceHeader& header) {
  Json json;
  json["model"] = header.model;
  if (!header.fingerprint.empty()) json["fingerprint"] = header.fingerprint;
  json["layers"] = header.layers;
  json["moe_layers"] = header.moe_layers;
  json["experts"] = header.experts;
  json["top_k"] = header.top_k;
  json["scores"] = Name(header.scores);
  if (header.scores != ScoreKind::kNone) {
    json["score_type"] = kTypeNames[static_cast<std::size_t>(header.score_type)];
    json["all_scores"] = header.all_scores;
  }
  if (!header.expert_bytes.empty()) json["expert_bytes"] = header.expert_bytes;
  if (!header.expert_shape.empty()) json["expert_shape"] = header.expert_shape;
  if (header.dense_bytes > 0) json["dense_bytes"] = header.dense_bytes;
  if (!header.origin.empty()) json["origin"] = header.origin;
  if (!header.licence.empty()) json["licence"] = header.licence;
  if (header.cache) {
    json["cache"] = {
        {"slots", header.cache->slots},         {"spare", header.cache->spare},
        {"per_layer", header.cache->per_layer}, {"shallow", header.cache->shallow},
        {"policy", header.cache->policy},       {"predictor", header.cache->predictor}};
  }
  if (header.sequences > 1) json["sequences"] = header.sequences;
  if (header.ends) json["ends"] = true;
  return json.Dump();
}

Result<TraceHeader> TraceHeaderFromJson(const std::string& name, std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(TraceHeader header, ReadJson<TraceHeader>(name, text, [](JsonValue json) {
                            return ReadHeader(json);
                          }));
  if (Status valid = Validate(header); !valid.ok()) return std::move(valid).WithContext(name);
  return header;
}

}  // namespace troupe
