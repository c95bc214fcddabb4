#include "server/embeddings.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>

#include "base/base64.h"
#include "base/check.h"
#include "base/json.h"
#include "server/answer_size.h"
#include "server/api_error.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"

namespace troupe {
namespace {

constexpr std::size_t kMostInputs = 2048;          // as OpenAI has it
constexpr std::size_t kMostTokensInAll = 1 << 20;  // half of what requests may keep (RequestMemory)

// The shortest numbers that are read as these floats again, but infinities and the like, which JSON
// has none of.
void AppendVector(const std::vector<float>& vector, bool base64, std::string& to) {
  if (base64) {
    to += '"';
    to += Base64(std::as_bytes(std::span(vector)));
    to += '"';
    return;
  }
  to += '[';
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (i > 0) to += ',';
    fmt::format_to(std::back_inserter(to), "{}", std::isfinite(vector[i]) ? vector[i] : 0.0f);
  }
  to += ']';
}

EmbeddingsCall CallFrom(const JsonValue& body, std::size_t width) {
  if (!body.IsObject()) body.Fail("an object");
  EmbeddingsCall call{.inputs = PromptsIn(body.At("input"), kMostInputs)};
  if (Says(body, "encoding_format")) {
    const JsonValue format = body.At("encoding_format");
    call.base64 = format.String() == "base64";
    if (!call.base64 && format.String() != "float") format.Fail("'float' or 'base64'");
  }
  if (Says(body, "dimensions") && body.At("dimensions").Count(1, width) != width) {
    body.At("dimensions").Fail(fmt::format("{}: vectors are not cut", width));
  }
  return call;
}

class EmbeddingsFormat final : public AnswerFormat {
 public:
  EmbeddingsFormat(bool base64, std::string model) : base64_(base64), model_(std::move(model)) {}

  // Nothing of it is streamed.
  std::string Open() override { TROUPE_CHECK(false); }
  std::string Delta(std::size_t, const TextDelta&) override { TROUPE_CHECK(false); }
  std::string Close(std::size_t, const Answer&) override { TROUPE_CHECK(false); }
  std::string Last(std::span<const ChoiceAnswer>) override { TROUPE_CHECK(false); }
  std::string Failure(const Status&) override { TROUPE_CHECK(false); }
  std::string Progress(std::size_t, std::size_t) override { TROUPE_CHECK(false); }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    std::string body = R"({"object":"list","data":[)";
    std::size_t tokens = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      fmt::format_to(std::back_inserter(body),
                     R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "", i);
      AppendVector(choices[i].answer.embedding, base64_, body);
      body += '}';
      tokens += choices[i].answer.usage.prompt_tokens;
    }
    body += fmt::format(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})"
                        "\n",
                        Json(model_).Dump(), tokens, tokens);
    return {.body = std::move(body)};
  }
  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  bool base64_;
  std::string model_;
};

}  // namespace

Result<EmbeddingsCall> ReadEmbeddingsCall(std::string_view body, std::size_t width) {
  return ReadBody<EmbeddingsCall>(body,
                                  [&](const JsonValue& json) { return CallFrom(json, width); });
}

Status CheckSize(const EmbeddingsCall& call, std::size_t width) {
  const std::size_t of_number = call.base64 ? 6 : 15;  // bytes, at most
  const std::size_t bytes = call.inputs.size() * width * of_number;
  if (bytes <= kMostAnswerBytes) return OkStatus();
  return InvalidArgument("request: input: {} vectors of {} numbers, expected at most {}{}",
                         call.inputs.size(), width, kMostAnswerBytes / (width * of_number),
                         call.base64 ? "" : " (more in base64)");
}

Result<JobRequests> EmbeddingRequests(EmbeddingsCall call, Pooling pooling, std::size_t context,
                                      const EncodeInput& encode) {
  JobRequests requests;
  requests.common.embed = pooling;
  requests.prompts.reserve(call.inputs.size());
  std::size_t all = 0;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string place = call.inputs.size() == 1 ? "input" : fmt::format("input[{}]", i);
    const Prompt input =
        std::move(call.inputs[i]);  // a text is not needed any more once it is read
    Result<std::vector<TokenId>> tokens = encode(input);
    if (!tokens.ok()) return Status(tokens.status()).WithContext("request: " + place);
    if (tokens->empty()) {
      return InvalidArgument("request: {}: no tokens, expected at least one", place);
    }
    if (tokens->size() > context) {
      return PromptTooLong(tokens->size(), context, ErrorStyle::kOpenAi)
          .WithContext("request: " + place);
    }
    all += tokens->size();
    if (all > kMostTokensInAll) {
      return InvalidArgument("request: input: more than {} tokens in all", kMostTokensInAll);
    }
    tokens->shrink_to_fit();
    requests.prompts.push_back(*std::move(tokens));
  }
  return requests;
}

std::unique_ptr<AnswerFormat> MakeEmbeddingsFormat(const EmbeddingsCall& call, std::string model) {
  return std::make_unique<EmbeddingsFormat>(call.base64, std::move(model));
}

}  // namespace troupe
