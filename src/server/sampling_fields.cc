#include "server/sampling_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <random>
#include <tuple>
#include <utility>

#include "expert/substitution/quality_limit.h"
#include "server/prompt_fields.h"
#include "server/repetition_fields.h"
#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"

namespace troupe {
namespace {

constexpr std::uint64_t kMostTopK = 1 << 20;
constexpr std::size_t kMostStops = 64, kMostStopBytes = 1024;
constexpr double kMostSeconds = 7 * 24 * 3600;
constexpr std::size_t kMostSaltBytes = 256;

void ReadBias(const JsonValue& body, Sampling& sampling) {
  const JsonValue bias = body.At("logit_bias");
  if (!bias.IsObject()) bias.Fail("an object of token ids and numbers from -100 to 100");
  for (const Json::Member& member : bias.raw().members()) {
    TokenId id = 0;
    const char* const end = member.key.data() + member.key.size();
    const auto [rest, error] = std::from_chars(member.key.data(), end, id);
    if (error != std::errc() || rest != end || id < 0) {
      bias.Fail(fmt::format("token ids as keys (found '{}')", member.key));
    }
    // Not looked for by its key, as there may be as many as a vocabulary has.
    const JsonValue value(member.value, fmt::format("{}.{}", bias.place(), member.key));
    const double number = value.Number(-100, 100);
    // The ends of the range mean never and, as nearly as a number can, always.
    sampling.logit_bias[id] =
        number <= -100 ? -std::numeric_limits<float>::infinity() : static_cast<float>(number);
  }
}

// What compiling the rule in that place has found, which may quote lines of it.
void CheckRule(const JsonValue& rule, const Status& compiled) {
  if (compiled.ok()) return;
  std::string message = fmt::format("{}: {}", rule.place(), compiled.message());
  std::ranges::replace(message, '\n', ' ');
  JsonValue::Refuse(message);
}

// As errors of a body begin.
std::string NameOfRule(const JsonValue& rule) { return "request: " + rule.place(); }

AnswerRule SchemaIn(const JsonValue& schema) {
  if (!schema.IsObject()) schema.Fail("a JSON Schema, an object");
  CheckRule(schema, CompileJsonSchema(schema.raw()).status());
  return {.kind = AnswerRule::Kind::kJsonSchema,
          .text = schema.raw().Dump(),
          .place = NameOfRule(schema)};
}

AnswerRule GrammarIn(const JsonValue& grammar) {
  std::string text = grammar.String();
  CheckRule(grammar, ParseGbnf(text).status());
  return {
      .kind = AnswerRule::Kind::kGrammar, .text = std::move(text), .place = NameOfRule(grammar)};
}

std::optional<AnswerRule> RuleIn(const JsonValue& body) {
  using Kind = AnswerRule::Kind;
  std::optional<AnswerRule> rule;
  const auto set = [&](const char* key, AnswerRule found) {
    if (rule) body.At(key).Fail("one of grammar, json_schema and response_format");
    rule = std::move(found);
  };
  if (Says(body, "grammar")) set("grammar", GrammarIn(body.At("grammar")));
  if (Says(body, "json_schema")) set("json_schema", SchemaIn(body.At("json_schema")));
  if (!Says(body, "response_format")) return rule;
  const JsonValue format = body.At("response_format");
  const JsonValue type = format.At("type");
  if (type.String() == "json_object") {
    // llama.cpp's clients put a schema beside it.
    if (Says(format, "schema")) {
      set("response_format", SchemaIn(format.At("schema")));
    } else {
      set("response_format", {.kind = Kind::kJsonObject, .text = "", .place = NameOfRule(format)});
    }
  } else if (type.String() == "json_schema") {
    set("response_format", SchemaIn(format.At("json_schema").At("schema")));
  } else if (type.String() != "text") {
    type.Fail("'text', 'json_object' or 'json_schema'");
  }
  return rule;
}

// A step of sampling as llama-server calls it, and its place among ours; 0: a step that this server
// lacks, which is refused by its own field unless it is off.
struct SamplingStep {
  char letter;
  std::string_view name;
  std::size_t place;
};
enum StepPlace : std::size_t { kNoStep, kPenalties, kDry, kTopK, kTopP, kMinP, kXtc, kTemperature };
constexpr std::array<SamplingStep, 11> kSteps = {{{'e', "penalties", kPenalties},
                                                  {'d', "dry", kDry},
                                                  {'k', "top_k", kTopK},
                                                  {'p', "top_p", kTopP},
                                                  {'m', "min_p", kMinP},
                                                  {'x', "xtc", kXtc},
                                                  {'t', "temperature", kTemperature},
                                                  {'s', "top_n_sigma", kNoStep},
                                                  {'y', "typ_p", kNoStep},
                                                  {'y', "typical_p", kNoStep},
                                                  {'i', "infill", kNoStep}}};

// The places of those in a list of names, or in a text of letters.
std::vector<std::size_t> PlacesOf(const JsonValue& samplers) {
  std::vector<std::size_t> places;
  const auto add = [&places](const JsonValue& at, const auto& what, auto SamplingStep::*is) {
    const auto found = std::ranges::find(kSteps, what, is);
    if (found == kSteps.end()) at.Fail("samplers that llama-server has");
    if (found->place != kNoStep) places.push_back(found->place);
  };
  if (samplers.IsString()) {
    for (const char letter : samplers.String()) add(samplers, letter, &SamplingStep::letter);
    return places;
  }
  if (!samplers.IsArray()) samplers.Fail("an array of names");
  for (std::size_t i = 0; i < samplers.size(); ++i) {
    add(samplers.At(i), samplers.At(i).String(), &SamplingStep::name);
  }
  return places;
}

// llama-server's order of sampling is kept to where it is ours; steps that it leaves out are off.
void ReadSamplers(const JsonValue& samplers, Sampling& sampling) {
  const std::vector<std::size_t> places = PlacesOf(samplers);
  if (!std::ranges::is_sorted(places)) {
    samplers.Fail("the order penalties, dry, top_k, top_p, min_p, xtc, temperature");
  }
  const auto lacks = [&places](std::size_t place) {
    return std::ranges::find(places, place) == places.end();
  };
  if (lacks(kPenalties)) sampling.penalty_window = 0;
  if (lacks(kDry)) sampling.dry.multiplier = 0;
  if (lacks(kTopK)) sampling.top_k = 0;
  if (lacks(kTopP)) sampling.top_p = 1;
  if (lacks(kMinP)) sampling.min_p = 0;
  if (lacks(kXtc)) sampling.xtc.probability = 0;
  if (lacks(kTemperature)) sampling.temperature = 1;
}

// What vLLM and llama-server would choose or show otherwise, each with the value that says nothing.
void RefuseOtherOptions(const JsonValue& body) {
  for (const auto& [key, instead] :
       {std::pair("bad_words", "none: ban tokens by logit_bias"),
        std::pair("allowed_token_ids", "none: ban tokens by logit_bias, or use grammar"),
        std::pair("logits_processors", "none: this server has none")}) {
    if (Says(body, key) && !(body.At(key).IsArray() && body.At(key).size() == 0)) {
      body.At(key).Fail(instead);
    }
  }
  for (const auto& [key, instead] :
       {std::pair("chat_template", "nothing: the model's own is used"),
        std::pair("truncate_prompt_tokens", "nothing: no part of a prompt is left out")}) {
    if (Says(body, key)) body.At(key).Fail(instead);
  }
  for (const auto& [key, usual, instead] :
       {std::tuple("include_stop_str_in_output", false, "false: what stops an answer is not shown"),
        std::tuple("skip_special_tokens", true, "true: special tokens have no text")}) {
    if (Says(body, key) && body.At(key).Flag() != usual) body.At(key).Fail(instead);
  }
}

std::string SaltIn(const JsonValue& value) {
  std::string salt = value.String();
  if (salt.empty() || salt.size() > kMostSaltBytes) {
    value.Fail(fmt::format("a text of 1 to {} bytes (found {})", kMostSaltBytes, salt.size()));
  }
  return salt;
}

// Options of other servers that would choose other tokens, and what says that they are not used.
void RefuseOtherSampling(const JsonValue& body) {
  constexpr std::pair<const char*, double> kUnused[] = {{"typical_p", 1},
                                                        {"typ_p", 1},
                                                        {"top_n_sigma", -1},
                                                        {"dynatemp_range", 0},
                                                        {"mirostat", 0},
                                                        {"top_a", 0},
                                                        {"length_penalty", 1},
                                                        {"min_tokens", 0},
                                                        {"adaptive_target", -1},
                                                        {"tfs", 1},
                                                        {"tfs_z", 1},
                                                        {"smoothing_factor", 0},
                                                        {"epsilon_cutoff", 0},
                                                        {"eta_cutoff", 0},
                                                        {"no_repeat_ngram_size", 0}};
  for (const auto& [key, unused] : kUnused) {
    if (Says(body, key) && body.At(key).Number() != unused) {
      body.At(key).Fail(fmt::format("{}: this server does not sample that way", unused));
    }
  }
  for (const char* key : {"guided_json", "guided_regex", "guided_choice", "guided_grammar",
                          "structured_outputs", "regex", "ebnf"}) {
    if (Says(body, key)) body.At(key).Fail("nothing: use response_format or grammar");
  }
  if (Says(body, "prompt_logprobs"))
    body.At("prompt_logprobs").Fail("nothing: this server tells none");
  if (Says(body, "grammar_lazy") && body.At("grammar_lazy").Flag()) {
    body.At("grammar_lazy").Fail("false: a grammar holds from the answer's first token");
  }
  if (Says(body, "lora") && body.At("lora").size() > 0) {
    body.At("lora").Fail("none: this server has no adapters");
  }
  if (Says(body, "t_max_predict_ms") && body.At("t_max_predict_ms").Number() > 0) {
    body.At("t_max_predict_ms").Fail("0: use timeout, in seconds");
  }
  if (Says(body, "use_beam_search") && body.At("use_beam_search").Flag()) {
    body.At("use_beam_search").Fail("false: this server samples");
  }
}

}  // namespace

Status CheckTokenIds(const Request& request, const Tokenizer& tokenizer) {
  const auto check = [&](const char* field, TokenId id) {
    if (tokenizer.Contains(id)) return OkStatus();
    return InvalidArgument("request: {}: token id {}, expected ids of the vocabulary of {}", field,
                           id, tokenizer.size());
  };
  for (const TokenId id : request.stop_tokens) TROUPE_RETURN_IF_ERROR(check("stop_token_ids", id));
  for (const auto& [id, bias] : request.sampling.logit_bias) {
    TROUPE_RETURN_IF_ERROR(check("logit_bias", id));
  }
  return OkStatus();
}

Status CheckLoss(const Request& request, const OffloadOptions& own) {
  if (!request.most_loss) return OkStatus();
  const std::string asked = ToString(LossLimit{*request.most_loss});
  if (own.exact()) {
    return InvalidArgument("request: quality: {}, expected exact: this server loses nothing",
                           asked);
  }
  const auto* const limit = std::get_if<LossLimit>(&own.lossiness);
  if (limit == nullptr || *request.most_loss <= limit->share) return OkStatus();
  return InvalidArgument("request: quality: {}, expected at most {}, as the server was started",
                         asked, ToString(*limit));
}

std::optional<AnswerRule> RuleOfFormat(const JsonValue& format) {
  using Kind = AnswerRule::Kind;
  const JsonValue type = format.At("type");
  if (type.String() == "text") return std::nullopt;
  if (type.String() == "json_object") {
    return AnswerRule{.kind = Kind::kJsonObject, .text = {}, .place = NameOfRule(format)};
  }
  if (type.String() != "json_schema") type.Fail("'text', 'json_object' or 'json_schema'");
  return SchemaIn(format.At("schema"));
}

std::optional<std::chrono::nanoseconds> TimeoutIn(const JsonValue& body) {
  if (!Says(body, "timeout")) return std::nullopt;
  const double seconds = body.At("timeout").Number(0.001, kMostSeconds);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
}

std::uint64_t DrawSeed() {
  std::random_device draw;
  return draw();
}

std::uint64_t CountOrNoLimit(const JsonValue& number, std::uint64_t most, std::uint64_t no_limit) {
  const bool is_none = number.raw().IsNumber() && number.raw().AsDouble() == -1;
  return is_none ? no_limit : number.Count(0, most);
}

bool Says(const JsonValue& body, const char* key) {
  const Json* value = body.raw().Find(key);
  return value != nullptr && !value->IsNull();
}

std::vector<std::string> StopsIn(const JsonValue& value) {
  const auto stop = [](const JsonValue& one) {
    std::string text = one.String();
    if (text.empty()) one.Fail("texts that are not empty");
    if (text.size() > kMostStopBytes) {
      one.Fail(fmt::format("a text of at most {} bytes (found {})", kMostStopBytes, text.size()));
    }
    return text;
  };
  if (value.IsString()) return {stop(value)};
  if (!value.IsArray() || value.size() > kMostStops) {
    value.Fail(fmt::format("a text or an array of at most {} texts", kMostStops));
  }
  std::vector<std::string> stops;
  for (std::size_t i = 0; i < value.size(); ++i) stops.push_back(stop(value.At(i)));
  return stops;
}

void ReadSampling(const JsonValue& body, Sampling& sampling) {
  const auto number = [&body](const char* key, double least, double most, double& to) {
    if (Says(body, key)) to = body.At(key).Number(least, most);
  };
  number("temperature", 0, 100, sampling.temperature);
  number("top_p", 0, 1, sampling.top_p);
  number("min_p", 0, 1, sampling.min_p);
  number("presence_penalty", -2, 2, sampling.presence_penalty);
  number("frequency_penalty", -2, 2, sampling.frequency_penalty);
  number("repeat_penalty", 0.01, 100, sampling.repetition_penalty);
  number("repetition_penalty", 0.01, 100, sampling.repetition_penalty);
  if (Says(body, "top_k")) {
    sampling.top_k =
        static_cast<std::uint32_t>(CountOrNoLimit(body.At("top_k"), kMostTopK, /*no_limit=*/0));
  }
  if (Says(body, "repeat_last_n")) {
    sampling.penalty_window =
        static_cast<std::uint32_t>(CountOrNoLimit(body.At("repeat_last_n"), kMostTopK, kMostTopK));
  }
  if (Says(body, "seed")) {
    const JsonValue seed = body.At("seed");
    const bool is_drawn = seed.raw().IsNumber() && seed.raw().AsDouble() == -1;
    sampling.seed =
        is_drawn ? DrawSeed() : seed.Count(0, std::numeric_limits<std::uint64_t>::max());
  }
  if (Says(body, "logit_bias")) ReadBias(body, sampling);
  ReadRepetition(body, sampling);
  if (Says(body, "samplers")) ReadSamplers(body.At("samplers"), sampling);
}

void ReadGeneration(const JsonValue& body, Request& request) {
  ReadSampling(body, request.sampling);
  RefuseOtherSampling(body);
  RefuseOtherOptions(body);
  if (Says(body, "stop_token_ids")) request.stop_tokens = TokensIn(body.At("stop_token_ids"));
  if (Says(body, "stop")) request.stop = StopsIn(body.At("stop"));
  if (Says(body, "ignore_eos")) request.ignore_end = body.At("ignore_eos").Flag();
  if (Says(body, "quality")) {
    const Result<Lossiness> quality = ParseQuality(body.At("quality").String());
    if (!quality.ok()) {
      body.At("quality").Fail("'exact', 'balanced', 'fast' or a percentage such as '2.5%'");
    }
    const auto* const limit = std::get_if<LossLimit>(&*quality);
    if (limit == nullptr) request.exact = true;
    if (limit != nullptr) request.most_loss = limit->share;
  }
  if (Says(body, "cache_salt")) request.cache_salt = SaltIn(body.At("cache_salt"));
  request.rule = RuleIn(body);
  request.timeout = TimeoutIn(body);
}

}  // namespace troupe
