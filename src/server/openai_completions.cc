#include "server/openai_completions.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "server/answer_costs.h"
#include "server/api_error.h"
#include "server/chat_fields.h"
#include "server/json_splice.h"
#include "server/prompt_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"
#include "server/sse.h"
#include "server/token_logprobs.h"
#include "text/utf8.h"

namespace troupe {
namespace {

constexpr std::size_t kMostPrompts = 128;

// The prompts are then what stands before the gap. Clients send an empty suffix where they mean
// none.
void MakeGaps(const JsonValue& suffix, std::vector<Prompt>& prompts) {
  const std::string after = suffix.String();
  if (after.empty()) return;
  CheckPromptBytes(suffix, prompts.size() * after.size());  // it stands behind each
  for (Prompt& prompt : prompts) {
    auto* const before = std::get_if<std::string>(&prompt);
    if (before == nullptr)
      suffix.Fail("nothing beside a prompt of tokens: the text before the gap");
    prompt = Gap{.before = std::move(*before), .after = after};
  }
}

CompletionCall CallFrom(const JsonValue& body, const Request& defaults) {
  CompletionCall call{.prompts = {}, .request = defaults, .call = {}, .echoes = {}};
  if (!body.IsObject()) body.Fail("an object");
  call.prompts = PromptsIn(body.At("prompt"), kMostPrompts);
  call.request.max_tokens = 16;  // as OpenAI has it
  for (const char* key : {"n_predict", "max_tokens"}) {
    if (!Says(body, key)) continue;
    call.request.max_tokens = CountOrNoLimit(body.At(key), kMostTokensAsked, defaults.max_tokens);
  }
  ReadGeneration(body, call.request);
  ReadShown(body, call.call);
  ReadProbs(body, call.call);
  if (Says(body, "logprobs")) {
    call.call.logprobs = body.At("logprobs").Count(0, kMostTopLogprobs);
  }
  if (Says(body, "best_of") && body.At("best_of").Count(1, kMostChoices) != call.call.n) {
    body.At("best_of").Fail("n: answers are not ranked");
  }
  if (Says(body, "echo") && body.At("echo").Flag()) {
    call.echo = true;
    if (call.TellsPrompt() && call.call.stream) {
      body.At("echo").Fail("false beside logprobs in a stream");
    }
    if (Says(body, "suffix")) body.At("echo").Fail("false beside a suffix");
  }
  if (Says(body, "add_special_tokens") && !body.At("add_special_tokens").Flag()) {
    body.At("add_special_tokens").Fail("true: send the prompt as tokens (/tokenize)");
  }
  if (Says(body, "suffix")) MakeGaps(body.At("suffix"), call.prompts);
  return call;
}

// That begin in a part of a text, which may be cut within one.
std::size_t CharactersIn(std::string_view part) {
  return static_cast<std::size_t>(
      std::ranges::count_if(part, [](unsigned char byte) { return (byte & 0xC0) != 0x80; }));
}

// As OpenAI writes a token that is no text by itself, such as a part of a character: several of
// them must not become one key.
std::string NameOf(const std::string& token) {
  if (!FindInvalidUtf8(token)) return token;
  std::string name = "bytes:";
  for (const unsigned char byte : token) name += fmt::format("\\x{:02x}", byte);
  return name;
}

// "logprobs" of a choice, as text: lists with an entry for each token.
class LogprobLists {
 public:
  // `offset`: characters of the text before the first token.
  explicit LogprobLists(std::size_t offset) : offset_(offset) {}

  void Add(std::span<const TokenLogprob> tokens) {
    for (const TokenLogprob& token : tokens) {
      Json top = Json::Object();
      for (const TokenLogprob::Other& other : token.top) top[NameOf(other.text)] = other.logprob;
      Add(token.text, token.logprob, std::move(top));
    }
  }
  // A token of which nobody knows how likely it was.
  void AddFirst(const std::string& text) { Add(text, nullptr, nullptr); }

  void AppendTo(std::string& to) const {
    to += R"({"tokens":[)" + texts_;
    to += R"(],"token_logprobs":[)" + logprobs_;
    to += R"(],"top_logprobs":[)" + tops_;
    to += R"(],"text_offset":[)" + offsets_;
    to += "]}";
  }

 private:
  void Add(const std::string& text, const Json& logprob, const Json& top) {
    Put(NameOf(text), texts_);
    Put(logprob, logprobs_);
    Put(top, tops_);
    Put(offset_, offsets_);
    offset_ += CharactersIn(text);
  }
  static void Put(const Json& value, std::string& list) {
    if (!list.empty()) list += ',';
    list += value.Dump();
  }

  std::size_t offset_;
  std::string texts_, logprobs_, tops_, offsets_;
};

class CompletionFormat final : public AnswerFormat {
 public:
  CompletionFormat(const CompletionCall& call, OpenAiHead head)
      : call_(call.call),
        echoes_(call.echoes),
        tells_prompt_(call.TellsPrompt()),
        head_(std::move(head)) {
    for (std::size_t c = 0; c < call.prompts.size() * call_.n; ++c) {
      offsets_.push_back(CharactersIn(EchoOf(c).text));
    }
  }

  std::string Open() override {
    std::string events;
    for (std::size_t c = 0; c < echoes_.size() * call_.n; ++c) {
      events += Event(Choice(c, EchoOf(c).text, nullptr, nullptr));
    }
    return events;
  }

  std::string Delta(std::size_t choice, const TextDelta& delta) override {
    LogprobLists lists(offsets_[choice]);
    if (call_.logprobs) lists.Add(delta.tokens);
    offsets_[choice] += CharactersIn(delta.text);
    return Event(Choice(choice, delta.text, call_.logprobs ? &lists : nullptr, nullptr));
  }

  std::string Close(std::size_t choice, const Answer& answer) override {
    std::string chunk = Chunk(Choice(choice, "", nullptr, OpenAiReason(answer.finish)));
    Json costs = Json::Object();
    TellCosts(answer.usage, head_.seed + choice % call_.n, costs);
    AppendMembers(chunk, costs.Dump());
    return EventOf(chunk);
  }

  std::string Last(std::span<const ChoiceAnswer> choices) override {
    std::string events;
    if (call_.include_usage) {
      Json chunk = HeadJson(head_, "text_completion");
      chunk["choices"] = Json::Array();
      chunk["usage"] = UsageJson(choices, call_.n);
      TellCosts(UsageOfAll(choices), head_.seed, chunk);
      events += EventOf(chunk.Dump());
    }
    return events + EventOf("[DONE]");
  }

  std::string Failure(const Status& status) override {
    return EventOf(ErrorBody(status)) + EventOf("[DONE]");
  }

  std::string Progress(std::size_t read, std::size_t all) override {
    Json chunk = HeadJson(head_, "text_completion");
    chunk["choices"] = Json::Array();
    chunk["prompt_progress"] = ProgressJson(read, all);
    return EventOf(chunk.Dump());
  }

  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    std::string body = HeadJson(head_, "text_completion").Dump();
    body.reserve(BytesOfAnswers(choices, kCompletionLogprobBytes));
    OpenMember(body, "choices");
    for (std::size_t c = 0; c < choices.size(); ++c) {
      body += c > 0 ? ',' : '[';
      const LogprobLists lists = LogprobsOf(c, choices[c]);
      body += Choice(c, EchoOf(c).text + choices[c].answer.text, call_.logprobs ? &lists : nullptr,
                     OpenAiReason(choices[c].answer.finish));
    }
    body += "]}";
    Json rest = {{"usage", UsageJson(choices, call_.n)}};
    TellCosts(UsageOfAll(choices), head_.seed, rest);
    AppendMembers(body, rest.Dump());
    return {.body = std::move(body)};
  }

  HttpResponse Refusal(const Status& status) override { return ErrorResponse(status); }

 private:
  using Echo = CompletionCall::Echo;

  Echo EchoOf(std::size_t choice) const {
    return echoes_.empty() ? Echo() : echoes_[choice / call_.n];
  }
  LogprobLists LogprobsOf(std::size_t choice, const ChoiceAnswer& answer) const {
    const Echo echo = EchoOf(choice);
    LogprobLists lists(tells_prompt_ ? 0 : CharactersIn(echo.text));
    if (tells_prompt_) {
      lists.AddFirst(echo.first_token);
      lists.Add(answer.prompt);
    }
    lists.Add(answer.tokens);
    return lists;
  }

  // `logprobs`: null if none are told.
  static std::string Choice(std::size_t index, std::string_view text, const LogprobLists* logprobs,
                            const Json& reason) {
    std::string choice = Json{{"index", index}, {"text", text}}.Dump();
    OpenMember(choice, "logprobs");
    if (logprobs != nullptr) {
      logprobs->AppendTo(choice);
    } else {
      choice += "null";
    }
    choice += '}';
    AppendMember(choice, "finish_reason", reason.Dump());
    return choice;
  }
  std::string Event(const std::string& choice) const { return EventOf(Chunk(choice)); }
  std::string Chunk(const std::string& choice) const {
    std::string chunk = HeadJson(head_, "text_completion").Dump();
    AppendMember(chunk, "choices", "[" + choice + "]");
    return chunk;
  }

  OpenAiCall call_;
  std::vector<Echo> echoes_;  // of each prompt, or none
  bool tells_prompt_;
  OpenAiHead head_;
  std::vector<std::size_t> offsets_;  // by choice: characters shown
};

}  // namespace

Result<CompletionCall> ReadCompletionCall(std::string_view body, const Request& defaults) {
  return ReadBody<CompletionCall>(body,
                                  [&](const JsonValue& json) { return CallFrom(json, defaults); });
}

std::unique_ptr<AnswerFormat> MakeCompletionFormat(const CompletionCall& call, OpenAiHead head) {
  return std::make_unique<CompletionFormat>(call, std::move(head));
}

}  // namespace troupe
