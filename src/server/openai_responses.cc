#include "server/openai_responses.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/chat_fields.h"
#include "server/json_splice.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"

namespace troupe {
namespace {

// Of a talk that was begun with OpenAI's own servers or tools: what they did, and what only they
// can read.
constexpr std::array<std::string_view, 19> kItemsPassedOver = {"web_search_call",
                                                               "file_search_call",
                                                               "computer_call",
                                                               "computer_call_output",
                                                               "code_interpreter_call",
                                                               "image_generation_call",
                                                               "mcp_list_tools",
                                                               "mcp_call",
                                                               "mcp_approval_request",
                                                               "mcp_approval_response",
                                                               "tool_search_call",
                                                               "tool_search_output",
                                                               "shell_call",
                                                               "shell_call_output",
                                                               "apply_patch_call",
                                                               "apply_patch_call_output",
                                                               "compaction",
                                                               "compaction_summary",
                                                               "ghost_snapshot"};

// The items of a talk as the messages of a chat: calls and reasoning belong to the message of the
// assistant that they stand beside.
class Talk {
 public:
  explicit Talk(ChatAsk& ask) : ask_(ask) {}

  void Add(const JsonValue& item) {
    const std::string type = Says(item, "type") ? item.At("type").String() : "message";
    if (type == "message") {
      AddMessage(item);
    } else if (type == "function_call") {
      Assistant();
      calls_.push_back(
          CallJson(item.At("call_id").String(), item.At("name").String(),
                   Says(item, "arguments") ? ArgumentsIn(item.At("arguments")) : "{}"));
    } else if (type == "custom_tool_call") {  // its input is a text in no format
      Assistant();
      const Json arguments = {{"input", item.At("input").String()}};
      calls_.push_back(
          CallJson(item.At("call_id").String(), item.At("name").String(), arguments.Dump()));
    } else if (type == "local_shell_call") {
      Assistant();
      const JsonValue id = item.At(Says(item, "call_id") ? "call_id" : "id");
      calls_.push_back(CallJson(id.String(), "local_shell", ArgumentsIn(item.At("action"))));
    } else if (type == "function_call_output" || type == "custom_tool_call_output" ||
               type == "local_shell_call_output") {
      AddOutput(item);
    } else if (type == "reasoning") {
      AddReasoning(item);
    } else if (std::ranges::find(kItemsPassedOver, type) == kItemsPassedOver.end()) {
      PassOver("an item", type, ask_);
    }
  }

  // Instructions and what else the system says before the talk are one message: few templates take
  // more.
  std::vector<Message> Take() && {
    Close();
    std::vector<Message> joined;
    for (Message& message : messages_) {
      if (joined.size() == 1 && joined[0].role == "system" && message.role == "system") {
        joined[0].content += "\n\n" + message.content;
      } else {
        joined.push_back(std::move(message));
      }
    }
    return joined;
  }

  void AddSystem(std::string text) {
    messages_.push_back({.role = "system", .content = std::move(text)});
  }

 private:
  void AddMessage(const JsonValue& item) {
    std::string role = item.At("role").String();
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant") {
      item.At("role").Fail("'system', 'developer', 'user' or 'assistant'");
    }
    std::string text = TextOfParts(
        item.At("content"), {"input_text", "output_text", "text", "refusal"}, UnreadParts::kNamed);
    if (role == "assistant") {
      if (calls_.size() > 0 || !content_.empty()) Close();
      Assistant();
      content_ = std::move(text);
      return;
    }
    Close();
    messages_.push_back({.role = std::move(role), .content = std::move(text)});
  }

  void AddOutput(const JsonValue& item) {
    Close();
    const JsonValue id = item.At(Says(item, "call_id") ? "call_id" : "id");
    const Json more = {{"tool_call_id", id.String()}};
    messages_.push_back({.role = "tool",
                         .content = TextOfParts(item.At("output"), {"input_text", "output_text"},
                                                UnreadParts::kNamed),
                         .more = more.Dump()});
  }

  void AddReasoning(const JsonValue& item) {
    if (calls_.size() > 0 || !content_.empty()) Close();
    Assistant();
    for (const char* key : {"content", "summary"}) {
      if (!Says(item, key) || item.At(key).size() == 0) continue;
      reasoning_ += TextOfParts(item.At(key), {"reasoning_text", "summary_text", "text"},
                                UnreadParts::kNamed);
      break;
    }
  }

  void Assistant() { is_open_ = true; }
  void Close() {
    if (!std::exchange(is_open_, false)) return;
    Json more = Json::Object();
    if (!reasoning_.empty()) more["reasoning_content"] = std::exchange(reasoning_, {});
    if (calls_.size() > 0) more["tool_calls"] = std::exchange(calls_, Json::Array());
    if (content_.empty() && more.size() == 0) return;  // reasoning that only its writer can read
    messages_.push_back({.role = "assistant",
                         .content = std::exchange(content_, {}),
                         .more = more.size() > 0 ? more.Dump() : std::string()});
  }

  ChatAsk& ask_;
  std::vector<Message> messages_;
  bool is_open_ = false;  // a message of the assistant's
  std::string content_, reasoning_;
  Json calls_ = Json::Array();
};

std::vector<Message> InputOf(const JsonValue& body, ChatAsk& ask) {
  Talk talk(ask);
  if (Says(body, "instructions")) talk.AddSystem(body.At("instructions").String());
  const JsonValue input = body.At("input");
  if (input.IsString()) {
    std::vector<Message> messages = std::move(talk).Take();
    messages.push_back({.role = "user", .content = input.String()});
    return messages;
  }
  if (!input.IsArray() || input.size() == 0) input.Fail("a text or an array of items");
  if (input.size() > kMostMessages) input.Fail("fewer items");
  for (std::size_t i = 0; i < input.size(); ++i) talk.Add(input.At(i));
  std::vector<Message> messages = std::move(talk).Take();
  if (messages.empty()) input.Fail("a message");
  return messages;
}

// Those that OpenAI's own servers run, and those with a syntax of their own, are listed whoever
// answers. A model that is not told of them calls the others.
Json FunctionsOf(const JsonValue& list, ChatAsk& ask) {
  if (!list.IsArray()) list.Fail("an array of tools");
  Json tools = Json::Array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue tool = list.At(i);
    const std::string type = tool.At("type").String();
    if (type != "function") {
      PassOver("a tool", type, ask);
      continue;
    }
    Json function = {{"name", tool.At("name").String()}};
    if (Says(tool, "description")) function["description"] = tool.At("description").String();
    if (Says(tool, "parameters")) function["parameters"] = tool.At("parameters").raw();
    if (Says(tool, "strict")) function["strict"] = tool.At("strict").Flag();
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

void RefuseWhatIsNotDone(const JsonValue& body) {
  for (const char* key : {"previous_response_id", "conversation"}) {
    if (Says(body, key)) body.At(key).Fail("nothing: responses are not kept, send the whole input");
  }
  if (Says(body, "prompt")) body.At("prompt").Fail("nothing: no prompts are kept");
  if (Says(body, "background") && body.At("background").Flag()) {
    body.At("background").Fail("false: responses are not kept");
  }
  if (Says(body, "truncation") && body.At("truncation").String() != "disabled") {
    body.At("truncation").Fail("'disabled': this server leaves out no part of a talk");
  }
  for (std::size_t i = 0; Says(body, "include") && i < body.At("include").size(); ++i) {
    const JsonValue include = body.At("include").At(i);
    if (include.String() == "message.output_text.logprobs") {
      include.Fail("none of it: /v1/chat/completions tells logprobs");
    }
  }
  if (Says(body, "top_logprobs") && body.At("top_logprobs").Count(0, kMostTopLogprobs) > 0) {
    body.At("top_logprobs").Fail("0: /v1/chat/completions tells logprobs");
  }
}

// As they were asked for, or what that means where they were not.
std::string EchoOf(const JsonValue& body) {
  const std::array<std::pair<const char*, Json>, 15> fields = {
      {{"instructions", nullptr},
       {"max_output_tokens", nullptr},
       {"metadata", Json::Object()},
       {"tools", Json::Array()},
       {"tool_choice", "auto"},
       {"temperature", nullptr},
       {"top_p", nullptr},
       {"text", Json{{"format", Json{{"type", "text"}}}}},
       {"reasoning", Json{{"effort", nullptr}, {"summary", nullptr}}},
       {"truncation", "disabled"},
       {"user", nullptr},
       {"max_tool_calls", nullptr},
       {"parallel_tool_calls", true},
       {"prompt_cache_key", nullptr},
       {"service_tier", nullptr}}};
  std::string echo;
  for (const auto& [key, otherwise] : fields) {
    const std::string value = Says(body, key) ? body.At(key).raw().Dump() : otherwise.Dump();
    if (echo.empty()) {
      echo = fmt::format(R"({{"{}":{}}})", key, value);
    } else {
      AppendMember(echo, key, value);
    }
  }
  echo.shrink_to_fit();
  return echo;
}

// As short as OpenAI has it: it is repeated with each event that repeats the request.
void CheckMetadata(const JsonValue& metadata) {
  constexpr std::size_t kMostPairs = 16, kLongestKey = 64, kLongestValue = 512;
  const auto characters = [](std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
  };
  if (!metadata.IsObject()) metadata.Fail("an object");
  if (metadata.size() > kMostPairs) metadata.Fail(fmt::format("at most {} of them", kMostPairs));
  for (const Json::Member& member : metadata.raw().members()) {
    if (characters(member.key) > kLongestKey) {
      metadata.Fail(fmt::format("names of at most {} characters", kLongestKey));
    }
    const JsonValue value = metadata.At(member.key.c_str());
    if (characters(value.String()) > kLongestValue) {
      value.Fail(fmt::format("a text of at most {} characters", kLongestValue));
    }
  }
}

ResponsesCall ResponsesCallOf(const JsonValue& body, const Request& defaults) {
  if (!body.IsObject()) body.Fail("an object");
  RefuseWhatIsNotDone(body);
  if (Says(body, "metadata")) CheckMetadata(body.At("metadata"));
  ResponsesCall call{.ask = {}, .request = defaults, .echo = EchoOf(body)};
  call.ask.chat.messages = InputOf(body, call.ask);
  if (Says(body, "tools")) call.ask.tools = FunctionsOf(body.At("tools"), call.ask);
  if (Says(body, "tool_choice")) {
    ReadToolChoice(body.At("tool_choice"), /*nested=*/false, call.ask);
  }
  if (Says(body, "parallel_tool_calls")) call.ask.parallel = body.At("parallel_tool_calls").Flag();
  ReadTemplateOptions(body, call.ask);
  if (Says(body, "reasoning")) {
    const JsonValue reasoning = body.At("reasoning");
    if (!reasoning.IsObject()) reasoning.Fail("an object");
    if (Says(reasoning, "effort")) SetEffort(reasoning.At("effort"), call.ask);
  }
  ReadGeneration(body, call.request);
  if (Says(body, "text")) {
    if (!body.At("text").IsObject()) body.At("text").Fail("an object");
    if (Says(body.At("text"), "format")) {
      auto rule = RuleOfFormat(body.At("text").At("format"));
      if (rule) call.request.rule = std::move(rule);
    }
  }
  if (Says(body, "max_output_tokens")) {
    call.request.max_tokens = body.At("max_output_tokens").Count(1, kMostTokensAsked);
  }
  if (Says(body, "stream")) call.stream = body.At("stream").Flag();
  if (Says(body, "return_progress")) call.progress = body.At("return_progress").Flag();
  return call;
}

}  // namespace

Result<ResponsesCall> ReadResponsesCall(std::string_view body, const Request& defaults) {
  return ReadBody<ResponsesCall>(
      body, [&](const JsonValue& json) { return ResponsesCallOf(json, defaults); });
}

}  // namespace troupe
