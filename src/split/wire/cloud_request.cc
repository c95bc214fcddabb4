#include "split/wire/cloud_request.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json.h"
#include "split/wire/token_ids.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostDraftName = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostTokens = 1 << 30;
constexpr std::uint64_t kMostMilliseconds = std::uint64_t{31} * 24 * 3600 * 1000;
constexpr const char* kNever = "never";

std::string_view NameOfRule(AnswerRule::Kind kind) {
  switch (kind) {
    case AnswerRule::Kind::kJsonObject:
      return "object";
    case AnswerRule::Kind::kJsonSchema:
      return "schema";
    case AnswerRule::Kind::kGrammar:
      return "grammar";
  }
  return "object";
}

std::vector<std::string> ReadTexts(const JsonValue& list) {
  if (!list.IsArray()) list.Fail("an array of texts");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size(); ++i) texts.push_back(list.At(i).String());
  return texts;
}

Json RecordOfBias(const std::map<TokenId, float>& bias) {
  Json record = Json::Object();
  for (const auto& [id, value] : bias) {
    record[fmt::format("{}", id)] = std::isfinite(value) ? Json(double{value}) : Json(kNever);
  }
  return record;
}

std::map<TokenId, float> ReadBias(const JsonValue& json) {
  if (!json.IsObject()) json.Fail("an object of token ids and numbers");
  std::map<TokenId, float> bias;
  for (const Json::Member& member : json.raw().members()) {
    TokenId id = 0;
    const char* const end = member.key.data() + member.key.size();
    const auto [rest, error] = std::from_chars(member.key.data(), end, id);
    if (error != std::errc() || rest != end || id < 0) json.Fail("token ids as keys");
    const JsonValue value = json.At(member.key.c_str());
    if (value.IsString()) {
      if (value.String() != kNever) value.Fail("a number or 'never'");
      bias[id] = -std::numeric_limits<float>::infinity();
    } else {
      bias[id] = static_cast<float>(value.Number(-1e30, 1e30));
    }
  }
  return bias;
}

Json RecordOf(const DryOptions& dry) {
  Json record = {{"multiplier", dry.multiplier},
                 {"base", dry.base},
                 {"allowed_length", dry.allowed_length},
                 {"window", dry.window},
                 {"breakers", dry.breakers}};
  return record;
}

DryOptions ReadDry(const JsonValue& json) {
  DryOptions dry;
  dry.multiplier = json.At("multiplier").Number();
  dry.base = json.At("base").Number();
  dry.allowed_length = static_cast<std::uint32_t>(json.At("allowed_length").Count(0, kMost32));
  dry.window = static_cast<std::uint32_t>(json.At("window").Count(0, kMost32));
  dry.breakers = ReadTexts(json.At("breakers"));
  return dry;
}

Json RecordOf(const Sampling& sampling) {
  Json record = {{"temperature", sampling.temperature},
                 {"top_k", sampling.top_k},
                 {"top_p", sampling.top_p},
                 {"min_p", sampling.min_p},
                 {"penalty_window", sampling.penalty_window},
                 {"repetition_penalty", sampling.repetition_penalty},
                 {"frequency_penalty", sampling.frequency_penalty},
                 {"presence_penalty", sampling.presence_penalty},
                 {"logit_bias", RecordOfBias(sampling.logit_bias)},
                 {"seed", sampling.seed}};
  if (sampling.dry.multiplier > 0) record["dry"] = RecordOf(sampling.dry);
  if (sampling.xtc.probability > 0) {
    record["xtc"] =
        Json{{"probability", sampling.xtc.probability}, {"threshold", sampling.xtc.threshold}};
  }
  return record;
}

Sampling ReadSamplingOf(const JsonValue& json) {
  const auto count = [&json](const char* key) {
    return static_cast<std::uint32_t>(json.At(key).Count(0, kMost32));
  };
  Sampling sampling;
  sampling.temperature = json.At("temperature").Number();
  sampling.top_k = count("top_k");
  sampling.top_p = json.At("top_p").Number();
  sampling.min_p = json.At("min_p").Number();
  sampling.penalty_window = count("penalty_window");
  sampling.repetition_penalty = json.At("repetition_penalty").Number();
  sampling.frequency_penalty = json.At("frequency_penalty").Number();
  sampling.presence_penalty = json.At("presence_penalty").Number();
  sampling.logit_bias = ReadBias(json.At("logit_bias"));
  sampling.seed = json.At("seed").Count(0, std::numeric_limits<std::uint64_t>::max());
  if (json.Has("dry")) sampling.dry = ReadDry(json.At("dry"));
  if (json.Has("xtc")) {
    const JsonValue xtc = json.At("xtc");
    sampling.xtc.probability = xtc.At("probability").Number();
    sampling.xtc.threshold = xtc.At("threshold").Number();
  }
  return sampling;
}

AnswerRule ReadRule(const JsonValue& json) {
  using Kind = AnswerRule::Kind;
  const std::string kind = json.At("kind").String();
  for (const Kind known : {Kind::kJsonObject, Kind::kJsonSchema, Kind::kGrammar}) {
    if (NameOfRule(known) == kind) return {.kind = known, .text = json.At("text").String()};
  }
  json.At("kind").Fail("'object', 'schema' or 'grammar'");
}

Json RecordOf(const Reasoning& reasoning) {
  Json record = {{"open", reasoning.open},
                 {"closes", reasoning.closes},
                 {"begun", reasoning.begun},
                 {"comes_again", reasoning.comes_again},
                 {"end", reasoning.end}};
  if (reasoning.most_tokens) record["most_tokens"] = *reasoning.most_tokens;
  return record;
}

Reasoning ReadReasoning(const JsonValue& json) {
  Reasoning reasoning{.open = json.At("open").String(),
                      .closes = ReadTexts(json.At("closes")),
                      .begun = json.At("begun").Flag(),
                      .comes_again = json.At("comes_again").Flag(),
                      .most_tokens = {},
                      .end = json.At("end").String()};
  if (json.Has("most_tokens")) {
    reasoning.most_tokens = json.At("most_tokens").Count(0, kMostTokens);
  }
  return reasoning;
}

std::string ReadSalt(const JsonValue& json) {
  constexpr std::size_t kMostBytes = 256;
  std::string salt = json.String();
  if (salt.empty() || salt.size() > kMostBytes) {
    json.Fail(fmt::format("a text of 1 to {} bytes (found {})", kMostBytes, salt.size()));
  }
  return salt;
}

}  // namespace

std::size_t PromptTokensOf(const Request& request) {
  const auto* const tokens = std::get_if<std::vector<TokenId>>(&request.prompt);
  return tokens == nullptr ? 0 : tokens->size() + request.begun.size();
}

std::string Encode(const CloudRequest& asked) {
  const Request& request = asked.request;
  Json record = Record(asked.proof);
  record.Update({{"prompt", std::get<std::vector<TokenId>>(request.prompt)},
                 {"begun", request.begun},
                 {"max_tokens", request.max_tokens},
                 {"sampling", RecordOf(request.sampling)},
                 {"stop", request.stop},
                 {"ignore_end", request.ignore_end},
                 {"show_marks", request.show_marks}});
  if (!request.stop_tokens.empty()) record["stop_tokens"] = request.stop_tokens;
  if (!request.cache_salt.empty()) record["cache_salt"] = request.cache_salt;
  if (request.rule) {
    record["rule"] = Json{{"kind", NameOfRule(request.rule->kind)}, {"text", request.rule->text}};
  }
  if (request.reasoning) record["reasoning"] = RecordOf(*request.reasoning);
  if (request.timeout) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*request.timeout).count();
    record["timeout_ms"] =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(left), kMostMilliseconds);
  }
  if (asked.drafts) record["drafts"] = *asked.drafts;
  if (asked.cut) record["cut"] = Record(*asked.cut);
  return record.Dump();
}

CloudRequest ReadCloudRequest(const JsonValue& json) {
  CloudRequest asked;
  asked.proof = ReadModelProof(json);
  Request& request = asked.request;
  request.prompt = ReadTokenIds(json.At("prompt"));
  request.max_tokens = json.At("max_tokens").Count(0, kMostTokens);
  request.sampling = ReadSamplingOf(json.At("sampling"));
  request.stop = ReadTexts(json.At("stop"));
  request.ignore_end = json.At("ignore_end").Flag();
  request.show_marks = json.At("show_marks").Flag();
  request.begun = ReadTokenIds(json.At("begun"));
  request.exact = true;
  if (json.Has("stop_tokens")) request.stop_tokens = ReadTokenIds(json.At("stop_tokens"));
  if (json.Has("cache_salt")) request.cache_salt = ReadSalt(json.At("cache_salt"));
  if (json.Has("rule")) request.rule = ReadRule(json.At("rule"));
  if (json.Has("reasoning")) request.reasoning = ReadReasoning(json.At("reasoning"));
  if (json.Has("timeout_ms")) {
    request.timeout = std::chrono::milliseconds(json.At("timeout_ms").Count(1, kMostMilliseconds));
  }
  if (json.Has("cut")) asked.cut = ReadCutAsk(json.At("cut"));
  if (json.Has("drafts")) asked.drafts = json.At("drafts").Count(0, kMostDraftName);
  return asked;
}

}  // namespace troupe
