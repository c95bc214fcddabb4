#include "server/live_state.h"

#include <troupe/version.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/json.h"

namespace troupe {
namespace {

// Levels of heat grow with the square root: most experts are chosen by few tokens, and differ
// there.
constexpr int kHottest = 15;

char HeatDigit(float share) {
  const int level = static_cast<int>(std::ceil(kHottest * std::sqrt(static_cast<double>(share))));
  return "0123456789abcdef"[std::clamp(level, 0, kHottest)];
}

char PlaceDigit(ExpertPlace place) {
  switch (place) {
    case ExpertPlace::kAbsent:
      return '0';
    case ExpertPlace::kLoading:
      return '1';
    case ExpertPlace::kInMemory:
      return '2';
    case ExpertPlace::kLowInMemory:
      return '3';
  }
  return '0';
}

std::string_view StageName(RequestState::Stage stage) {
  switch (stage) {
    case RequestState::Stage::kWaiting:
      return "waiting";
    case RequestState::Stage::kReading:
      return "reading";
    case RequestState::Stage::kDecoding:
      return "decoding";
  }
  return "waiting";
}

// A text for each layer, a character for each of its experts.
template <typename T, typename Digit>
Json LayerTexts(const ExpertMap& map, const std::vector<T>& values, Digit digit) {
  Json texts = Json::Array();
  for (std::size_t layer = 0; layer < map.layers; ++layer) {
    const std::span<const T> of(values.data() + layer * map.experts, map.experts);
    std::string text;
    for (const T& value : of) text += digit(value);
    texts.push_back(std::move(text));
  }
  return texts;
}

Json TimesJson(const RecentTimes::Percentiles& times) {
  return {{"count", times.count}, {"p50", times.p50}, {"p99", times.p99}};
}

// Null: there is none.
Json CardJson(const CardState& card, const ExpertUsage& used) {
  if (card.name.empty()) return nullptr;
  return {{"name", card.name},          {"slots", card.slots},
          {"held", card.held},          {"bytes", card.memory.count()},
          {"hits", used.card_hits},     {"rows", used.card_rows},
          {"copies", used.card_copies}, {"failed", used.card_failures > 0}};
}

Json RequestsJson(const std::vector<RequestState>& requests) {
  Json list = Json::Array();
  for (const RequestState& request : requests) {
    list.push_back({{"id", request.id},
                    {"stage", StageName(request.stage)},
                    {"prompt", request.prompt_tokens},
                    {"read", request.prompt_read},
                    {"generated", request.generated_tokens},
                    {"seconds", request.seconds}});
  }
  return list;
}

}  // namespace

std::string LiveFacts(std::string_view model, const Plan& plan, bool is_node) {
  Json parts = Json::Array();
  const auto add = [&](std::string_view name, Bytes bytes) {
    if (bytes > Bytes()) parts.push_back({{"name", name}, {"bytes", bytes.count()}});
  };
  add("experts", plan.experts);
  add("dense weights", plan.dense);
  add("KV cache", plan.kv_cache);
  add("state", plan.state);
  add("workspace", plan.workspace);
  add("staging", plan.staging);
  add("prediction", plan.prediction);
  add("connections", plan.connections);
  add("answer rules", plan.rules);
  add("peers", plan.peers);
  add("requests", plan.requests);
  add("words", plan.words);
  add("cut prompts", plan.cuts);
  add("draft model", plan.draft);
  add("program", plan.program);
  return Json{{"model", model},
              {"version", Version()},
              {"context", plan.context},
              {"sequences", plan.sequences},
              {"threads", plan.threads},
              {"answers", plan.lossiness},
              {"experts_in_memory", plan.experts_in_memory},
              {"experts", plan.experts_in_all},
              {"cluster", Json(is_node)},
              {"memory", Json{{"budget", plan.budget.count()}, {"parts", std::move(parts)}}}}
      .Dump();
}

std::string LiveState(const Metrics& metrics, const ModelState& state, const LiveTimes& times) {
  const ExpertUsage& used = metrics.experts;
  const ExpertMap& map = state.experts;
  return Json{{"seconds", times.now},
              {"requests_now", Json{{"waiting", metrics.requests_waiting},
                                    {"reading", metrics.requests_reading},
                                    {"decoding", metrics.requests_decoding}}},
              {"sums", Json{{"passes", metrics.passes},
                            {"pass_seconds", metrics.pass_seconds},
                            {"prompt_tokens", metrics.prompt_tokens},
                            {"generated_tokens", metrics.generated_tokens},
                            {"requests_finished", metrics.requests_finished},
                            {"requests_cancelled", metrics.requests_cancelled},
                            {"requests_failed", metrics.requests_failed},
                            {"requests_refused", metrics.requests_refused},
                            {"hits", used.hits},
                            {"misses", used.misses},
                            {"bytes_read", used.bytes_read},
                            {"reading_seconds", used.reading_seconds},
                            {"stall_seconds", used.stall_seconds},
                            {"deciding_seconds", used.deciding_seconds},
                            {"prefetches", used.prefetches},
                            {"prefetch_useful", used.prefetch_useful},
                            {"not_exact", used.NotExact()}}},
              {"first_token", TimesJson(times.first_token)},
              {"between_tokens", TimesJson(times.between_tokens)},
              {"card", CardJson(metrics.card, used)},
              {"requests", RequestsJson(state.requests)},
              {"experts", Json{{"layers", map.layers},
                               {"layer_numbers", map.layer_numbers},
                               {"experts", map.experts},
                               {"places", LayerTexts(map, map.places, PlaceDigit)},
                               {"heat", LayerTexts(map, map.heat, HeatDigit)}}}}
      .Dump();
}

}  // namespace troupe
