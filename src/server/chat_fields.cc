#include "server/chat_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/sampling_fields.h"

namespace troupe {
namespace {

constexpr std::size_t kMostCalls = 1024;

Json CallsIn(const JsonValue& list) {
  if (!list.IsArray() || list.size() > kMostCalls) list.Fail("an array of calls");
  Json calls = Json::Array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue call = list.At(i);
    if (Says(call, "type") && call.At("type").String() != "function") {
      call.At("type").Fail("'function'");
    }
    const JsonValue function = call.At("function");
    calls.push_back(
        CallJson(Says(call, "id") ? call.At("id").String() : fmt::format("call_{}", i),
                 function.At("name").String(),
                 Says(function, "arguments") ? ArgumentsIn(function.At("arguments")) : "{}"));
  }
  return calls;
}

// What stands beside role and content.
std::string MoreIn(const JsonValue& message, const std::string& role) {
  Json more = Json::Object();
  if (Says(message, "name")) more["name"] = message.At("name").String();
  if (role == "tool" && Says(message, "tool_call_id")) {
    more["tool_call_id"] = message.At("tool_call_id").String();
  }
  if (role == "assistant") {
    for (const char* key : {"reasoning_content", "reasoning"}) {
      if (!Says(message, key)) continue;
      more["reasoning_content"] = message.At(key).String();
      break;
    }
    if (Says(message, "function_call")) message.At("function_call").Fail("nothing: use tool_calls");
    if (Says(message, "tool_calls") && message.At("tool_calls").size() > 0) {
      more["tool_calls"] = CallsIn(message.At("tool_calls"));
    }
  } else if (Says(message, "tool_calls")) {
    message.At("tool_calls").Fail("nothing: only the assistant calls tools");
  }
  return more.size() > 0 ? more.Dump() : std::string();
}

Json& OptionsOf(ChatAsk& ask) {
  if (ask.options.IsNull()) ask.options = Json::Object();
  return ask.options;
}

}  // namespace

std::string_view NameOfUnread(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"image", "[an image, which this model cannot see]"},
      {"input_image", "[an image, which this model cannot see]"},
      {"input_audio", "[sound, which this model cannot hear]"},
      {"input_file", "[a file, which this model cannot open]"},
      {"document", "[a document, which this model cannot open]"},
  };
  const auto* const found =
      std::ranges::find(kNames, type, [](const auto& name) { return name.first; });
  return found == std::end(kNames) ? std::string_view() : found->second;
}

std::string TextOfParts(const JsonValue& content, std::initializer_list<std::string_view> types,
                        UnreadParts unread) {
  if (content.IsString()) return content.String();
  if (!content.IsArray()) content.Fail("a text or an array of parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue part = content.At(i);
    const std::string type = part.At("type").String();
    if (unread == UnreadParts::kNamed && !NameOfUnread(type).empty()) {
      text += NameOfUnread(type);
      continue;
    }
    if (std::ranges::find(types, type) == types.end()) {
      part.At("type").Fail(
          fmt::format("'{}': this model reads no other", fmt::join(types, "', '")));
    }
    text += part.At(type == "refusal" ? "refusal" : "text").String();
  }
  return text;
}

std::vector<Message> ReadOpenAiMessages(const JsonValue& list) {
  if (!list.IsArray() || list.size() == 0) list.Fail("an array of messages, at least one");
  if (list.size() > kMostMessages) list.Fail("fewer messages");
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  std::vector<Message> messages;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue message = list.At(i);
    std::string role = message.At("role").String();
    if (role == "developer") role = "system";  // its newer name
    if (std::ranges::find(kRoles, role) == kRoles.end()) {
      message.At("role").Fail("'system', 'user', 'assistant' or 'tool'");
    }
    std::string content;
    if (Says(message, "content")) {
      content = TextOfParts(message.At("content"), {"text", "refusal"});
    }
    std::string more = MoreIn(message, role);
    messages.push_back(
        {.role = std::move(role), .content = std::move(content), .more = std::move(more)});
  }
  return messages;
}

Json CallJson(std::string id, std::string name, std::string arguments) {
  return {{"id", std::move(id)},
          {"type", "function"},
          {"function", Json{{"name", std::move(name)}, {"arguments", std::move(arguments)}}}};
}

std::string ArgumentsIn(const JsonValue& arguments) {
  if (arguments.IsObject()) return arguments.raw().Dump();
  const std::string text = arguments.String();
  return text.empty() ? "{}" : text;
}

void ReadToolChoice(const JsonValue& choice, bool nested, ChatAsk& ask) {
  if (choice.IsString()) {
    const std::string text = choice.String();
    if (text == "auto") {
      ask.choice = ToolChoice::kAuto;
    } else if (text == "none") {
      ask.choice = ToolChoice::kNone;
    } else if (text == "required") {
      ask.choice = ToolChoice::kRequired;
    } else {
      choice.Fail("'auto', 'none', 'required' or a function");
    }
    return;
  }
  const JsonValue type = choice.At("type");
  if (type.String() != "function") type.Fail("'function'");
  ask.choice = ToolChoice::kRequired;
  ask.only = (nested ? choice.At("function") : choice).At("name").String();
}

void ReadTemplateOptions(const JsonValue& body, ChatAsk& ask) {
  if (Says(body, "chat_template_kwargs")) {
    const JsonValue options = body.At("chat_template_kwargs");
    if (!options.IsObject()) options.Fail("an object");
    for (const Json::Member& option : options.raw().members()) {
      for (const std::string_view own : {"messages", "tools", "add_generation_prompt", "bos_token",
                                         "eos_token", "unk_token", "pad_token"}) {
        if (option.key == own) options.At(option.key.c_str()).Fail("an option of the template's");
      }
    }
    OptionsOf(ask).Update(options.raw());
  }
  if (Says(body, "enable_thinking")) {
    OptionsOf(ask)["enable_thinking"] = body.At("enable_thinking").Flag();
  }
  // As llama-server, vLLM and Qwen's API call it.
  for (const char* key : {"thinking_budget_tokens", "thinking_token_budget", "thinking_budget"}) {
    if (!Says(body, key)) continue;
    ask.most_reasoning = body.At(key).Count(0, kMostTokensAsked);
    OptionsOf(ask)["thinking_budget"] = *ask.most_reasoning;
  }
  if (Says(body, "reasoning_effort")) SetEffort(body.At("reasoning_effort"), ask);
  if (Says(body, "reasoning_format")) {
    const JsonValue format = body.At("reasoning_format");
    const std::string name = format.String();
    if (name != "none" && name != "auto" && name != "deepseek") {
      format.Fail("'auto', 'deepseek' or 'none'");
    }
    ask.parts_reasoning = name != "none";
  }
}

void SetEffort(const JsonValue& effort, ChatAsk& ask) {
  const std::string name = effort.String();
  constexpr std::array<std::string_view, 7> kEfforts = {"none", "minimal", "low", "medium",
                                                        "high", "xhigh",   "max"};
  if (std::ranges::find(kEfforts, name) == kEfforts.end()) {
    effort.Fail(fmt::format("one of {}", fmt::join(kEfforts, ", ")));
  }
  if (name == "none") {
    OptionsOf(ask)["enable_thinking"] = false;
  } else {
    // The templates that know an effort know three.
    const bool is_most = name == "xhigh" || name == "max";
    OptionsOf(ask)["reasoning_effort"] = name == "minimal" ? "low" : is_most ? "high" : name;
  }
}

}  // namespace troupe
