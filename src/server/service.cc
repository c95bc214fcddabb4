#include "server/service.h"

#include <troupe/version.h>

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "api/model_access.h"
#include "server/anthropic_messages.h"
#include "server/api_error.h"
#include "server/live_page.h"
#include "server/live_state.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"
#include "server/text_job.h"

namespace troupe {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";
constexpr std::string_view kResponses = "/v1/responses";
constexpr std::string_view kCompletions = "/v1/completions";
constexpr std::string_view kMessages = "/v1/messages";

std::uint64_t SecondsNow() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

// In UTC: servers of one service agree.
std::string Today() {
  const std::chrono::year_month_day day(
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now()));
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

Result<std::vector<TokenId>> TokensIn(std::string_view body) {
  return ReadBody<std::vector<TokenId>>(body, [](const JsonValue& json) {
    const JsonValue list = json.At("tokens");
    if (!list.IsArray()) list.Fail("an array of token ids");
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < list.size(); ++i) {
      tokens.push_back(static_cast<TokenId>(list.At(i).Count(0, (std::uint64_t{1} << 31) - 1)));
    }
    return tokens;
  });
}

}  // namespace

Service::Service(Model& model, ServiceOptions options)
    : model_(model),
      options_(std::move(options)),
      started_(SecondsNow()),
      feed_([this] { return StateEvent(); }, {}) {}

void Service::AddTo(Router& router) {
  using Handle = void (Service::*)(HttpRequest, HttpReplyPtr);
  const auto add = [&](const char* method, std::string_view path, Router::Door door,
                       Handle handle) {
    router.Add(method, std::string(path), door,
               [this, handle](HttpRequest request, HttpReplyPtr reply) {
                 (this->*handle)(std::move(request), std::move(reply));
               });
  };
  constexpr auto kOpen = Router::Door::kOpen, kKeyed = Router::Door::kKeyed;
  for (const std::string_view prefix : {"/v1", ""}) {
    add("POST", fmt::format("{}/chat/completions", prefix), kKeyed, &Service::OnChat);
    add("POST", fmt::format("{}/responses", prefix), kKeyed, &Service::OnResponses);
    add("POST", fmt::format("{}/completions", prefix), kKeyed, &Service::OnCompletion);
    add("GET", fmt::format("{}/models", prefix), kKeyed, &Service::OnModels);
  }
  add("POST", kMessages, kKeyed, &Service::OnMessages);
  add("POST", "/v1/messages/count_tokens", kKeyed, &Service::OnCountTokens);
  add("POST", "/tokenize", kKeyed, &Service::OnTokenize);
  add("POST", "/detokenize", kKeyed, &Service::OnDetokenize);
  add("GET", "/props", kKeyed, &Service::OnProps);
  add("GET", "/metrics", kKeyed, &Service::OnMetrics);
  add("GET", "/health", kOpen, &Service::OnHealth);
  add("GET", "/", kOpen, &Service::OnPage);
  add("GET", "/live", kKeyed, &Service::OnLive);
}

Request Service::Defaults() const {
  Request request{.prompt = {}, .sampling = options_.sampling};
  request.max_tokens = options_.most_tokens > 0 ? options_.most_tokens : model_.plan().context;
  if (!options_.seed_is_given) request.sampling.seed = DrawSeed();
  return request;
}

std::string Service::NewId(std::string_view kind) {
  return fmt::format("{}{:x}{:06x}", kind, started_, ids_.fetch_add(1));
}

JobListener Service::ListenerFor(std::string_view endpoint) {
  return {.on_first = [this](double seconds) { first_token_.Add(seconds); },
          .on_gap =
              [this](double seconds) {
                metrics_.OnGap(seconds);
                between_tokens_.Add(seconds);
              },
          .on_end = [this, endpoint](const JobEnd& end) { metrics_.OnEnd(endpoint, end); }};
}

Result<AnswerReading> Service::Prepare(const ChatAsk& ask, Request& request) {
  const Engine& engine = ModelAccess::EngineOf(model_);
  return PrepareChat(ask, Today(), engine.tokenizer(), engine.chat(), request);
}

void Service::OnChat(HttpRequest request, HttpReplyPtr reply) {
  Result<ChatCall> call = ReadChatCall(request.body, Defaults());
  Result<AnswerReading> reading =
      call.ok() ? Prepare(call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok()) {
    metrics_.CountRequest(kChat, HttpStatusOf(reading.status()));
    return reply->Send(ErrorResponse(reading.status()));
  }
  std::vector<Request> requests(call->call.n, call->request);
  for (std::size_t c = 0; c < requests.size(); ++c) requests[c].sampling.seed += c;
  RunTextJob(model_, std::move(requests),
             {.stream = call->call.stream, .logprobs = call->call.logprobs},
             MakeChatFormat(*call,
                            {.id = NewId("chatcmpl-"),
                             .model = options_.name,
                             .created = SecondsNow(),
                             .seed = call->request.sampling.seed},
                            *std::move(reading)),
             std::move(reply), ListenerFor(kChat));
}

void Service::OnResponses(HttpRequest request, HttpReplyPtr reply) {
  Result<ResponsesCall> call = ReadResponsesCall(request.body, Defaults());
  Result<AnswerReading> reading =
      call.ok() ? Prepare(call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok()) {
    metrics_.CountRequest(kResponses, HttpStatusOf(reading.status()));
    return reply->Send(ErrorResponse(reading.status()));
  }
  auto format = MakeResponsesFormat(*call,
                                    {.id = NewId("resp_"),
                                     .model = options_.name,
                                     .created = SecondsNow(),
                                     .seed = call->request.sampling.seed},
                                    *std::move(reading));
  RunTextJob(model_, {call->request}, {.stream = call->stream}, std::move(format), std::move(reply),
             ListenerFor(kResponses));
}

void Service::OnCompletion(HttpRequest request, HttpReplyPtr reply) {
  const Result<CompletionCall> call = ReadCompletionCall(request.body, Defaults());
  if (!call.ok()) {
    metrics_.CountRequest(kCompletions, HttpStatusOf(call.status()));
    return reply->Send(ErrorResponse(call.status()));
  }
  std::vector<Request> requests;
  for (const Prompt& prompt : call->prompts) {
    for (std::size_t c = 0; c < call->call.n; ++c) {
      requests.push_back(call->request);
      requests.back().prompt = prompt;
      requests.back().sampling.seed += c;
    }
  }
  RunTextJob(model_, std::move(requests),
             {.stream = call->call.stream, .logprobs = call->call.logprobs},
             MakeCompletionFormat(*call, {.id = NewId("cmpl-"),
                                          .model = options_.name,
                                          .created = SecondsNow(),
                                          .seed = call->request.sampling.seed}),
             std::move(reply), ListenerFor(kCompletions));
}

void Service::OnMessages(HttpRequest request, HttpReplyPtr reply) {
  Result<MessagesCall> call = ReadMessagesCall(request.body, MessagesKind::kAnswer, Defaults());
  Result<AnswerReading> reading =
      call.ok() ? Prepare(call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok()) {
    metrics_.CountRequest(kMessages, HttpStatusOf(reading.status()));
    return reply->Send(ErrorResponse(reading.status(), ErrorStyle::kAnthropic));
  }
  call->prompt_tokens = std::get<std::vector<TokenId>>(call->request.prompt).size();
  auto format =
      MakeMessagesFormat(*call, {.id = NewId("msg_"), .model = options_.name}, *std::move(reading));
  RunTextJob(model_, {std::move(call->request)}, {.stream = call->stream}, std::move(format),
             std::move(reply), ListenerFor(kMessages));
}

void Service::OnCountTokens(HttpRequest request, HttpReplyPtr reply) {
  Result<MessagesCall> call = ReadMessagesCall(request.body, MessagesKind::kCount, Defaults());
  const Status status = call.ok() ? Prepare(call->ask, call->request).status() : call.status();
  if (!status.ok()) return reply->Send(ErrorResponse(status, ErrorStyle::kAnthropic));
  const auto& tokens = std::get<std::vector<TokenId>>(call->request.prompt);
  reply->Send({.body = Json{{"input_tokens", tokens.size()}}.Dump()});
}

void Service::OnTokenize(HttpRequest request, HttpReplyPtr reply) {
  const Result<std::string> text = ReadBody<std::string>(
      request.body, [](const JsonValue& json) { return json.At("content").String(); });
  if (!text.ok()) return reply->Send(ErrorResponse(text.status()));
  const Result<std::vector<TokenId>> tokens = model_.Tokenize(*text);
  if (!tokens.ok()) return reply->Send(ErrorResponse(tokens.status()));
  reply->Send({.body = Json{{"tokens", *tokens}}.Dump()});
}

void Service::OnDetokenize(HttpRequest request, HttpReplyPtr reply) {
  const Result<std::vector<TokenId>> tokens = TokensIn(request.body);
  if (!tokens.ok()) return reply->Send(ErrorResponse(tokens.status()));
  const Result<std::string> text = model_.Detokenize(*tokens);
  if (!text.ok()) return reply->Send(ErrorResponse(text.status()));
  reply->Send({.body = Json{{"content", *text}}.Dump()});
}

void Service::OnModels(HttpRequest, HttpReplyPtr reply) {
  const Json model = {{"id", options_.name},
                      {"object", "model"},
                      {"created", started_},
                      {"owned_by", "troupe"},
                      {"meta", Json{{"n_ctx", model_.plan().context}}}};
  reply->Send({.body = Json{{"object", "list"}, {"data", Json::Array({model})}}.Dump()});
}

void Service::OnProps(HttpRequest, HttpReplyPtr reply) {
  const Plan& plan = model_.plan();
  const Sampling& sampling = options_.sampling;
  reply->Send(
      {.body = Json{{"model", options_.name},
                    {"version", Version()},
                    {"context", plan.context},
                    {"sequences", plan.sequences},
                    {"memory_budget_bytes", plan.budget.count()},
                    {"experts_in_memory", plan.experts_in_memory},
                    {"experts", plan.experts_in_all},
                    {"lossiness", plan.lossiness},
                    {"default_generation_settings", Json{{"temperature", sampling.temperature},
                                                         {"top_k", sampling.top_k},
                                                         {"top_p", sampling.top_p},
                                                         {"min_p", sampling.min_p}}}}
                   .Dump()});
}

void Service::OnHealth(HttpRequest, HttpReplyPtr reply) {
  reply->Send({.body = R"({"status":"ok"})"});
}

void Service::OnPage(HttpRequest request, HttpReplyPtr reply) { reply->Send(LivePage(request)); }

void Service::OnLive(HttpRequest request, HttpReplyPtr reply) {
  if (request.method == "HEAD") return reply->Send({.content_type = std::string(kEventStream)});
  const Status added = feed_.Add(reply, EventOf("facts", LiveFacts(options_.name, model_.plan())));
  if (!added.ok()) reply->Send(ErrorResponse(added));
}

std::string Service::StateEvent() const {
  // Passes of a model that reads much from disk may take seconds; the page shows that it lives.
  constexpr std::chrono::seconds kLongestWait(1);
  const ModelState state = model_.state(kLongestWait);
  const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
  return EventOf("state", LiveState(model_.metrics(), state,
                                    {.now = now.count(),
                                     .first_token = first_token_.Look(),
                                     .between_tokens = between_tokens_.Look()}));
}

void Service::OnMetrics(HttpRequest, HttpReplyPtr reply) {
  const HttpServer* server = server_;
  const HttpCounters transport = server != nullptr ? server->counters() : HttpCounters();
  reply->Send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
               .body = metrics_.Page(model_.metrics(), model_.plan(),
                                     server != nullptr ? &transport : nullptr)});
}

}  // namespace troupe
