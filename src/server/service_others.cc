// The endpoints of Service that other servers have beside the APIs: llama-server's and vLLM's; and
// what clients of ollama's are told.
#include <fmt/core.h>
#include <troupe/version.h>

#include <algorithm>
#include <array>
#include <utility>

#include "api/model_access.h"
#include "base/today.h"
#include "server/api_error.h"
#include "server/llama_completion.h"
#include "server/openai_chat.h"
#include "server/openai_responses.h"
#include "server/service.h"
#include "server/service_paths.h"
#include "server/token_logprobs.h"

namespace troupe {
namespace {

// What ollama's clients ask, and where the same is to be had here.
struct OfOllama {
  std::string_view path, instead;
};
constexpr std::array<OfOllama, 8> kOllama = {{{"/api/chat", kChat},
                                              {"/api/generate", kCompletions},
                                              {"/api/embed", kEmbeddings},
                                              {"/api/embeddings", kEmbeddings},
                                              {"/api/tags", kModels},
                                              {"/api/ps", kModels},
                                              {"/api/show", kProps},
                                              {"/api/version", kVersion}}};

// What llama-server and vLLM have and this server does not.
struct Hint {
  std::string_view path, hint;
};
constexpr std::string_view kRanksNothing = "this server ranks no texts; /v1/embeddings has vectors";
constexpr std::array<Hint, 6> kHints = {
    {{"/rerank", kRanksNothing},
     {"/v1/rerank", kRanksNothing},
     {"/reranking", kRanksNothing},
     {"/v1/reranking", kRanksNothing},
     {"/embedding", "this server has vectors at /v1/embeddings"},
     {"/slots/*",
      "slots are not saved or erased one by one: the prefix cache keeps what was read of prompts, "
      "and with --prefix-file from one run to the next"}}};

}  // namespace

void Service::AddHintsTo(Router& router) {
  for (const Hint& hint : kHints) {
    for (const char* method : {"GET", "POST"}) {
      router.Add(method, std::string(hint.path), Router::Door::kKeyed,
                 [this, hint](const HttpRequest& request, const HttpReplyPtr& reply) {
                   const Status status = Error(Code::kNotFound, "{} {}: there is no such path: {}",
                                               request.method, request.path, hint.hint);
                   Reply(EndpointOf(""), *reply, ErrorResponse(status));
                 });
    }
  }
}

void Service::OnLlamaCompletion(Asked asked) {
  RunLlama(std::move(asked), LlamaKind::kText, kLlamaCompletion);
}

void Service::OnInfill(Asked asked) { RunLlama(std::move(asked), LlamaKind::kGap, kInfill); }

void Service::RunLlama(Asked asked, LlamaKind kind, std::string_view endpoint) {
  Result<LlamaCall> call = ReadLlamaCall(asked.TakeBody().text, kind, DefaultsFor(asked));
  Status status = call.status();
  if (call.ok() && kind == LlamaKind::kGap &&
      !ModelAccess::EngineOf(asked.model()).tokenizer().fill_in_marks()) {
    status = InvalidArgument("request: input_suffix: expected no gap, as this model fills none");
  }
  if (!status.ok()) return Reply(endpoint, *asked.reply, ErrorResponse(status));
  Result<std::vector<std::vector<TokenId>>> prompts = TokenizeAll(asked.model(), call->prompts);
  if (!prompts.ok()) return Reply(endpoint, *asked.reply, ErrorResponse(prompts.status()));
  auto format =
      MakeLlamaFormat(*call, {.model = asked.options().name, .seed = call->request.sampling.seed});
  Run(std::move(asked), {.common = std::move(call->request), .prompts = *std::move(prompts)},
      {.stream = call->call.stream,
       .progress = call->call.progress,
       .logprobs = call->call.logprobs,
       .logprob_bytes = kLlamaLogprobBytes},
      std::move(format), /*kept=*/Bytes(), endpoint);
}

void Service::OnApplyTemplate(Asked asked) {
  const Result<ChatCall> call = ReadChatCall(asked.TakeBody().text, DefaultsFor(asked));
  const Result<std::string> prompt =
      call.ok() ? RenderPrompt(call->ask, Today(), ModelAccess::EngineOf(asked.model()).chat())
                : Result<std::string>(call.status());
  Reply(kApplyTemplate, *asked.reply,
        prompt.ok() ? HttpResponse{.body = Json{{"prompt", *prompt}}.Dump()}
                    : ErrorResponse(prompt.status()));
}

void Service::OnInputTokens(Asked asked) {
  Result<ResponsesCall> call = ReadResponsesCall(asked.TakeBody().text, DefaultsFor(asked));
  const Status status =
      call.ok() ? Prepare(asked, call->ask, call->request).status() : call.status();
  if (!status.ok()) return Reply(kInputTokens, *asked.reply, ErrorResponse(status));
  const auto& tokens = std::get<std::vector<TokenId>>(call->request.prompt);
  Reply(
      kInputTokens, *asked.reply,
      {.body = Json{{"object", "response.input_tokens"}, {"input_tokens", tokens.size()}}.Dump()});
}

void Service::OnVersion(HttpRequest, HttpReplyPtr reply) {
  Reply(kVersion, *reply, {.body = Json{{"version", Version()}}.Dump()});
}

// One for each sequence. Nothing of what they say.
void Service::OnSlots(HttpRequest, HttpReplyPtr reply) {
  const auto told = facts();
  const std::optional<ModelUse> use = gate_.Look();
  const Metrics now = use ? use->served().model->metrics() : Metrics();
  Json slots = Json::Array();
  for (std::size_t i = 0; i < told->plan.sequences; ++i) {
    slots.push_back({{"id", i},
                     {"n_ctx", told->plan.context},
                     {"is_processing", i < now.requests_reading + now.requests_decoding}});
  }
  Reply(kSlots, *reply, {.body = slots.Dump()});
}

void Service::OnOllama(HttpRequest request, HttpReplyPtr reply) {
  const auto* const known = std::ranges::find(kOllama, request.path, &OfOllama::path);
  const Status status = Error(
      Code::kNotFound,
      "{}: this server does not speak ollama's API: point the client at OpenAI's, with the base "
      "URL http://HOST:PORT/v1{}",
      request.path, known == kOllama.end() ? "" : fmt::format(" ({} here)", known->instead));
  Reply(kOllamas, *reply, ErrorResponse(status));
}

}  // namespace troupe
