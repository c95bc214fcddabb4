#include "server/answer_count.h"

#include <algorithm>
#include <array>

#include "server/openai_values.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/service_paths.h"

namespace troupe {
namespace {

std::size_t ChoicesIn(const JsonValue& body) {
  OpenAiCall call;
  ReadShown(body, call);
  return call.n;
}

std::size_t AnswersIn(std::string_view endpoint, const JsonValue& body) {
  if (!body.IsObject()) return 1;
  if (endpoint == kChat) return ChoicesIn(body);
  if (endpoint == kLlamaCompletion) return CountPrompts(body.At("prompt"));
  if (endpoint == kCompletions) return CountPrompts(body.At("prompt")) * ChoicesIn(body);
  return CountPrompts(body.At("input"));
}

}  // namespace

std::size_t CountAnswers(std::string_view endpoint, std::string_view body, std::size_t together) {
  constexpr std::array<std::string_view, 4> kSeveral = {kChat, kCompletions, kEmbeddings,
                                                        kLlamaCompletion};
  if (std::ranges::find(kSeveral, endpoint) == kSeveral.end()) return 1;
  const Result<std::size_t> answers =
      ReadBody<std::size_t>(body, [&](const JsonValue& json) { return AnswersIn(endpoint, json); });
  return std::clamp<std::size_t>(answers.ok() ? *answers : 1, 1,
                                 std::max<std::size_t>(together, 1));
}

bool AsksForStream(std::string_view endpoint, std::string_view body) {
  constexpr std::array<std::string_view, 6> kStreaming = {kChat,     kCompletions,     kResponses,
                                                          kMessages, kLlamaCompletion, kInfill};
  const bool may_stream = std::ranges::find(kStreaming, endpoint) != kStreaming.end();
  if (!may_stream || body.find("\"stream\"") == body.npos) return false;
  const Result<bool> streams = ReadBody<bool>(body, [](const JsonValue& json) {
    return json.IsObject() && Says(json, "stream") && json.At("stream").Flag();
  });
  return streams.ok() && *streams;
}

std::optional<std::chrono::nanoseconds> TimeoutOf(std::string_view body) {
  using Timeout = std::optional<std::chrono::nanoseconds>;
  if (body.find("\"timeout\"") == body.npos) return std::nullopt;
  const Result<Timeout> timeout = ReadBody<Timeout>(
      body, [](const JsonValue& json) { return json.IsObject() ? TimeoutIn(json) : std::nullopt; });
  return timeout.ok() ? *timeout : std::nullopt;
}

}  // namespace troupe
