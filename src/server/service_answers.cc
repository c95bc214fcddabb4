// The endpoints of Service that the model answers: what each makes of a request, and of the
// answers.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "api/model_access.h"
#include "base/today.h"
#include "server/answer_size.h"
#include "server/anthropic_messages.h"
#include "server/api_error.h"
#include "server/cache_salt.h"
#include "server/cloud_answer.h"
#include "server/cloud_cut.h"
#include "server/embeddings.h"
#include "server/job_requests.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/service.h"
#include "server/service_paths.h"
#include "server/text_job.h"
#include "server/token_logprobs.h"
#include "server/tokenize.h"

namespace troupe {
namespace {

// Of an answer whose request names no number: room is taken for these first.
constexpr std::size_t kUsualTokens = 512;
// Of prompts that answers repeat. An answer may become half as long again as it is set aside for.
constexpr std::size_t kMostEchoBytes = kMostAnswerBytes / 2;

// An error names the prompt's place.
Result<std::vector<TokenId>> TokensOf(const Model& model, std::span<const Prompt> prompts,
                                      std::size_t i) {
  Result<std::vector<TokenId>> tokens = model.PromptTokens(prompts[i]);
  const bool is_gap = std::holds_alternative<Gap>(prompts[i]);  // of more than one field
  if (tokens.ok() || is_gap) return tokens;
  const std::string place = prompts.size() == 1 ? "prompt" : fmt::format("prompt[{}]", i);
  return Status(tokens.status()).WithContext("request: " + place);
}

std::size_t BytesInJson(std::string_view text) {
  constexpr std::size_t kOfControl = 6;  // "\u001f"
  std::size_t bytes = 0;
  for (const char c : text) {
    const bool is_control = static_cast<unsigned char>(c) < ' ';
    bytes += is_control ? kOfControl : c == '"' || c == '\\' ? 2 : 1;
  }
  return bytes;
}

// The prompts become their tokens, which the answers tell of: each of them all of its prompt, which
// is not counted among the tokens of answers.
Status FindEchoes(Model& model, CompletionCall& call) {
  const Tokenizer& tokenizer = ModelAccess::EngineOf(model).tokenizer();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < call.prompts.size(); ++i) {
    Prompt& prompt = call.prompts[i];
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, TokensOf(model, call.prompts, i));
    TROUPE_ASSIGN_OR_RETURN(std::string text, model.Detokenize(tokens));
    if (const auto* const own = std::get_if<std::string>(&prompt)) text = *own;
    std::string first;
    if (!tokens.empty()) first = tokenizer.TokenBytes(tokens.front());
    bytes += call.call.n * BytesInJson(text);
    call.echoes.push_back({.text = std::move(text), .first_token = std::move(first)});
    prompt = std::move(tokens);
  }
  if (bytes > kMostEchoBytes) {
    return InvalidArgument("request: {}: {} of prompts in the answers, expected at most {}",
                           call.call.n > 1 ? "n" : "prompt", ToString(Bytes(bytes)),
                           ToString(Bytes(kMostEchoBytes)));
  }
  return OkStatus();
}

void Salt(const ServiceOptions& options, const HttpRequest& asked, Request& request) {
  std::optional<std::string_view> key;
  if (options.cache_per_key) key = KeyOf(asked);
  request.cache_salt = CacheSalt(key, request.cache_salt);
}

// A longer answer is cut off, as agents ask for more than any would have.
void Limit(const ServiceOptions& options, Request& request) {
  if (options.most_tokens) request.max_tokens = std::min(request.max_tokens, *options.most_tokens);
  if (!options.most_time) return;
  request.timeout = std::min(request.timeout.value_or(*options.most_time), *options.most_time);
}

}  // namespace

Result<std::vector<std::vector<TokenId>>> Service::TokenizeAll(const Model& model,
                                                               std::span<Prompt> prompts) {
  std::vector<std::vector<TokenId>> all;
  all.reserve(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(std::vector<TokenId> tokens, TokensOf(model, prompts, i));
    prompts[i] = {};
    tokens.shrink_to_fit();
    all.push_back(std::move(tokens));
  }
  return all;
}

Request Service::DefaultsFor(const Asked& asked) {
  const ServiceOptions& options = asked.options();
  Request request{.prompt = {}, .sampling = options.sampling};
  request.max_tokens = options.tokens > 0 ? options.tokens : asked.model().plan().context;
  if (!options.seed_is_given) request.sampling.seed = DrawSeed();
  return request;
}

Result<AnswerReading> Service::Prepare(const Asked& asked, const ChatAsk& ask, Request& request) {
  passed_over_.Tell(ask.passed_over);
  const Engine& engine = ModelAccess::EngineOf(asked.model());
  return PrepareChat(ask, Today(), engine.tokenizer(), engine.chat(), request);
}

void Service::OnChat(Asked asked) {
  Result<ChatCall> call = ReadChatCall(asked.TakeBody().text, DefaultsFor(asked));
  Result<AnswerReading> reading =
      call.ok() ? Prepare(asked, call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok()) return Reply(kChat, *asked.reply, ErrorResponse(reading.status()));
  const std::uint64_t seed = call->request.sampling.seed;
  const Bytes kept = reading->tools->size_in_memory();
  auto format = MakeChatFormat(*call,
                               {.id = NewId("chatcmpl-"),
                                .model = asked.options().name,
                                .created = SecondsNow(),
                                .seed = seed},
                               *std::move(reading));
  Run(std::move(asked), JobRequests::Of(std::move(call->request), call->call.n),
      {.stream = call->call.stream,
       .progress = call->call.progress,
       .logprobs = call->call.logprobs,
       .logprob_bytes = kChatLogprobBytes},
      std::move(format), kept, kChat);
}

void Service::OnResponses(Asked asked) {
  Result<ResponsesCall> call = ReadResponsesCall(asked.TakeBody().text, DefaultsFor(asked));
  Result<AnswerReading> reading =
      call.ok() ? Prepare(asked, call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok()) return Reply(kResponses, *asked.reply, ErrorResponse(reading.status()));
  ToldWaiting told = asked.reply->TakeOver();
  if (told.events == 0) told.head = {.id = NewId("resp_"), .model = {}, .created = SecondsNow()};
  told.head.model = asked.options().name;
  told.head.seed = call->request.sampling.seed;
  const Bytes kept = reading->tools->size_in_memory() + Bytes(call->echo.size());
  auto format = MakeResponsesFormat(*call, std::move(told.head), *std::move(reading), told.events);
  Run(std::move(asked), JobRequests::Of(std::move(call->request)),
      {.stream = call->stream, .progress = call->progress}, std::move(format), kept, kResponses);
}

void Service::OnCompletion(Asked asked) {
  Result<CompletionCall> call = ReadCompletionCall(asked.TakeBody().text, DefaultsFor(asked));
  Status status = call.status();
  if (call.ok() && call->echo) status = FindEchoes(asked.model(), *call);
  if (call.ok() && std::holds_alternative<Gap>(call->prompts.front()) &&
      !ModelAccess::EngineOf(asked.model()).tokenizer().fill_in_marks()) {
    status = InvalidArgument("request: suffix: expected none, as this model fills no gaps");
  }
  if (!status.ok()) return Reply(kCompletions, *asked.reply, ErrorResponse(status));
  Result<std::vector<std::vector<TokenId>>> prompts = TokenizeAll(asked.model(), call->prompts);
  if (!prompts.ok()) return Reply(kCompletions, *asked.reply, ErrorResponse(prompts.status()));
  const std::uint64_t seed = call->request.sampling.seed;
  Bytes kept;
  for (const CompletionCall::Echo& echo : call->echoes) kept += Bytes(echo.text.size());
  auto format = MakeCompletionFormat(
      *call,
      {.id = NewId("cmpl-"), .model = asked.options().name, .created = SecondsNow(), .seed = seed});
  Run(std::move(asked),
      {.common = std::move(call->request), .prompts = *std::move(prompts), .n = call->call.n},
      {.stream = call->call.stream,
       .progress = call->call.progress,
       .logprobs = call->call.logprobs,
       .prompt_logprobs = call->TellsPrompt(),
       .logprob_bytes = kCompletionLogprobBytes},
      std::move(format), kept, kCompletions);
}

Result<Pooling> Service::HowToPool(const Asked& asked) {
  constexpr std::uint32_t kMean = 1, kLast = 3;  // of GGUF's pooling_type
  if (asked.options().pooling) return *asked.options().pooling;
  const std::uint32_t said = ModelAccess::EngineOf(asked.model()).config().pooling;
  if (said == kMean) return Pooling::kMean;
  if (said == kLast) return Pooling::kLast;
  return Error(Code::kUnimplemented,
               "this model was not made for embeddings; `troupe serve --pooling mean` or `last` "
               "makes some all the same");
}

void Service::OnEmbeddings(Asked asked) {
  const Result<Pooling> pooling = HowToPool(asked);
  const std::size_t width = ModelAccess::EngineOf(asked.model()).config().width;
  Result<EmbeddingsCall> call = pooling.ok() ? ReadEmbeddingsCall(asked.TakeBody().text, width)
                                             : Result<EmbeddingsCall>(pooling.status());
  if (!call.ok()) return Reply(kEmbeddings, *asked.reply, ErrorResponse(call.status()));
  if (Status fits = CheckSize(*call, width); !fits.ok()) {
    return Reply(kEmbeddings, *asked.reply, ErrorResponse(fits));
  }
  auto format = MakeEmbeddingsFormat(*call, asked.options().name);
  Result<JobRequests> requests =
      EmbeddingRequests(*std::move(call), *pooling, asked.model().plan().context,
                        [&](const Prompt& input) { return asked.model().PromptTokens(input); });
  if (!requests.ok()) return Reply(kEmbeddings, *asked.reply, ErrorResponse(requests.status()));
  Run(std::move(asked), *std::move(requests), {}, std::move(format), /*kept=*/Bytes(), kEmbeddings);
}

void Service::OnMessages(Asked asked) {
  Result<MessagesCall> call =
      ReadMessagesCall(asked.TakeBody().text, MessagesKind::kAnswer, DefaultsFor(asked));
  Result<AnswerReading> reading =
      call.ok() ? Prepare(asked, call->ask, call->request) : Result<AnswerReading>(call.status());
  if (!reading.ok())
    return Reply(kMessages, *asked.reply, ErrorResponse(reading.status(), ErrorStyle::kAnthropic));
  call->prompt_tokens = std::get<std::vector<TokenId>>(call->request.prompt).size();
  const Bytes kept = reading->tools->size_in_memory();
  auto format = MakeMessagesFormat(
      *call,
      {.id = NewId("msg_"), .model = asked.options().name, .seed = call->request.sampling.seed},
      *std::move(reading));
  Run(std::move(asked), JobRequests::Of(std::move(call->request)),
      {.stream = call->stream, .progress = call->progress}, std::move(format), kept, kMessages);
}

Status Service::FitAnswer(const Asked& asked, JobRequests& requests, JobOptions& options) {
  if (options.stream || requests.common.embed) return OkStatus();
  const std::size_t context = asked.model().plan().context;
  const std::size_t otherwise = asked.options().tokens > 0 ? asked.options().tokens : context;
  AnswerShape shape{.prompts = requests.prompts.size(),
                    .n = requests.n,
                    .tokens = std::min(requests.common.max_tokens, context),
                    .logprobs = options.logprobs,
                    .logprob_bytes = options.logprob_bytes};
  shape.tokens_are_asked_for = shape.tokens < std::min(otherwise, context);
  if (options.prompt_logprobs) {
    for (const auto& prompt : requests.prompts) shape.prompt_tokens += requests.n * prompt.size();
  }
  TROUPE_ASSIGN_OR_RETURN(shape.tokens, TokensThatFit(shape));
  requests.common.max_tokens = std::min(requests.common.max_tokens, shape.tokens);
  if (!shape.tokens_are_asked_for) shape.tokens = std::min(shape.tokens, kUsualTokens);
  if (shape.logprobs || requests.count() > 1) options.answer = Bytes(shape.Bytes());
  return OkStatus();
}

void Service::Run(Asked asked, JobRequests requests, JobOptions options,
                  std::unique_ptr<AnswerFormat> format, Bytes kept, std::string_view endpoint) {
  const std::optional<ServedModel::Quality>& quality = asked.use.served().quality;
  const OffloadOptions own = quality ? OffloadOptions{.lossiness = quality->lossiness}
                                     : ModelAccess::EngineOf(asked.model()).offload_options();
  if (Status lossy = CheckLoss(requests.common, own); !lossy.ok()) {
    return Reply(endpoint, *asked.reply, format->Refusal(lossy));
  }
  const Tokenizer& tokenizer = ModelAccess::EngineOf(asked.model()).tokenizer();
  if (Status ids = CheckTokenIds(requests.common, tokenizer); !ids.ok()) {
    return Reply(endpoint, *asked.reply, format->Refusal(ids));
  }
  const std::size_t longest = requests.LongestPrompt();
  if (const std::size_t context = asked.model().plan().context; longest > context) {
    const Status too_long = PromptTooLong(longest, context, StyleOf(endpoint));
    ++refused_;
    return Reply(endpoint, *asked.reply, format->Refusal(too_long));
  }
  Limit(asked.options(), requests.common);
  Salt(asked.options(), asked.request, requests.common);
  if (const Status fits = FitAnswer(asked, requests, options); !fits.ok()) {
    return Reply(endpoint, *asked.reply, format->Refusal(fits));
  }
  options.together = asked.model().plan().sequences;
  options.kept = kept + requests.SizeInMemory(options.together);
  Result<RequestMemory::Share> memory = asked.facts->memory->Take(options.kept + options.answer);
  if (!memory.ok()) return Reply(endpoint, *asked.reply, format->Refusal(memory.status()));
  options.memory = *std::move(memory);
  options.came = asked.came;
  options.pulse = &pulse_;
  options.blanks_after = asked.options().most_silence;
  options.errands = &errands_;
  RunTextJob(std::move(asked.use), std::move(requests), options, std::move(format),
             std::move(asked.reply), ListenerFor(endpoint));
}

void Service::OnSplitAnswer(Asked asked) {
  const std::optional<ModelProof>& own = asked.use.served().for_ends;
  if (!own) return Reply(kSplitAnswers, *asked.reply, NotForEnds());
  Result<CloudRequest> call = ReadBody<CloudRequest>(asked.TakeBody().text, ReadCloudRequest);
  if (!call.ok()) return Reply(kSplitAnswers, *asked.reply, ErrorResponse(call.status()));
  if (const Status fits = CheckFits(*own, call->proof, "the end"); !fits.ok()) {
    return Reply(kSplitAnswers, *asked.reply, OtherModel(fits));
  }
  Salt(asked.options(), asked.request, call->request);
  JobRequests one = JobRequests::Of(std::move(call->request));
  Result<RequestMemory::Share> memory = asked.facts->memory->Take(one.SizeInMemory(1));
  if (!memory.ok()) return Reply(kSplitAnswers, *asked.reply, ErrorResponse(memory.status()));
  call->request = one.Make(0);
  CloudCall wanted{.asked = *std::move(call),
                   .end = EndOf(asked.request),
                   .memory = *std::move(memory),
                   .came = asked.came};
  auto use = std::make_shared<const ModelUse>(std::move(asked.use));
  const ForEnds shared{.pulse = pulse_for_ends_, .turns = end_turns_, .drafts = end_drafts_};
  if (wanted.asked.cut) {
    return CloudCut::Run(std::move(use), std::move(wanted), std::move(asked.reply), shared,
                         ListenerFor(kSplitAnswers));
  }
  RunCloudAnswer(std::move(use), std::move(wanted), std::move(asked.reply), shared,
                 ListenerFor(kSplitAnswers));
}

void Service::OnCountTokens(Asked asked) {
  Result<MessagesCall> call =
      ReadMessagesCall(asked.TakeBody().text, MessagesKind::kCount, DefaultsFor(asked));
  const Status status =
      call.ok() ? Prepare(asked, call->ask, call->request).status() : call.status();
  if (!status.ok())
    return Reply(kCountTokens, *asked.reply, ErrorResponse(status, ErrorStyle::kAnthropic));
  const auto& tokens = std::get<std::vector<TokenId>>(call->request.prompt);
  Reply(kCountTokens, *asked.reply, {.body = Json{{"input_tokens", tokens.size()}}.Dump()});
}

void Service::OnTokenize(Asked asked) {
  const Tokenizer& tokenizer = ModelAccess::EngineOf(asked.model()).tokenizer();
  Result<std::string> answer =
      Tokenized(asked.TakeBody().text, tokenizer, asked.model().plan().context);
  Reply(kTokenize, *asked.reply,
        answer.ok() ? HttpResponse{.body = *std::move(answer)} : ErrorResponse(answer.status()));
}

void Service::OnDetokenize(Asked asked) {
  const auto tokens = ReadBody<std::vector<TokenId>>(
      asked.TakeBody().text, [](const JsonValue& json) { return TokensIn(json.At("tokens")); });
  if (!tokens.ok()) return Reply(kDetokenize, *asked.reply, ErrorResponse(tokens.status()));
  const Status fits = CheckTextLength(*tokens, ModelAccess::EngineOf(asked.model()).tokenizer());
  if (!fits.ok()) return Reply(kDetokenize, *asked.reply, ErrorResponse(fits));
  const Result<std::string> text = asked.model().Detokenize(*tokens);
  if (!text.ok()) {
    const Status why = Status(text.status()).WithContext("request: tokens");
    return Reply(kDetokenize, *asked.reply, ErrorResponse(why));
  }
  Reply(kDetokenize, *asked.reply, {.body = Json{{"content", *text}}.Dump()});
}

}  // namespace troupe
