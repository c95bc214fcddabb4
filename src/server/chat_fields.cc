#include "server/chat_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/sampling_fields.h"

namespace troupe {
namespace {

constexpr std::size_t kMostCalls = 1024;
constexpr std::size_t kMostOptions = 64;  // of a template

Json CallsIn(const JsonValue& list, ChatAsk& ask) {
  if (!list.IsArray() || list.size() > kMostCalls) list.Fail("an array of calls");
  Json calls = Json::Array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue call = list.At(i);
    const std::string id = Says(call, "id") ? call.At("id").String() : fmt::format("call_{}", i);
    const std::string type = Says(call, "type") ? call.At("type").String() : "function";
    if (type == "custom") {  // its input is a text in no format
      const JsonValue custom = call.At("custom");
      const Json arguments = {{"input", custom.At("input").String()}};
      calls.push_back(CallJson(id, custom.At("name").String(), arguments.Dump()));
    } else if (type == "function") {
      const JsonValue function = call.At("function");
      calls.push_back(
          CallJson(id, function.At("name").String(),
                   Says(function, "arguments") ? ArgumentsIn(function.At("arguments")) : "{}"));
    } else {
      PassOver("a call", type, ask);
    }
  }
  return calls;
}

// What stands beside role and content.
std::string MoreIn(const JsonValue& message, const std::string& role, ChatAsk& ask) {
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
      Json calls = CallsIn(message.At("tool_calls"), ask);
      if (calls.size() > 0) more["tool_calls"] = std::move(calls);
    }
  } else if (Says(message, "tool_calls")) {
    message.At("tool_calls").Fail("nothing: only the assistant calls tools");
  }
  return more.size() > 0 ? more.Dump() : std::string();
}

std::string NameOfUnread(std::string_view type) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"image", "[an image, which this model cannot see]"},
      {"image_url", "[an image, which this model cannot see]"},
      {"input_image", "[an image, which this model cannot see]"},
      {"input_audio", "[sound, which this model cannot hear]"},
      {"file", "[a file, which this model cannot open]"},
      {"input_file", "[a file, which this model cannot open]"},
      {"document", "[a document, which this model cannot open]"},
  };
  const auto* const found =
      std::ranges::find(kNames, type, [](const auto& name) { return name.first; });
  if (found != std::end(kNames)) return std::string(found->second);
  return fmt::format("[{}, which this model cannot read]", type);
}

// Of those that Anthropic's clients give as what a tool has found.
std::string SearchResultIn(const JsonValue& part) {
  std::string text;
  for (const char* key : {"title", "source"}) {
    if (Says(part, key)) text += part.At(key).String() + "\n";
  }
  if (Says(part, "content")) {
    text += TextOfParts(part.At("content"), {"text"}, UnreadParts::kNamed);
  }
  return text;
}

// The name of each of the tools that a choice allows.
std::vector<std::string> NamesIn(const JsonValue& list, bool nested) {
  if (!list.IsArray()) list.Fail("an array of tools");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue tool = list.At(i);
    if (tool.At("type").String() != "function") continue;  // it was passed over
    names.push_back((nested ? tool.At("function") : tool).At("name").String());
  }
  return names;
}

void ReadAllowed(const JsonValue& allowed, bool nested, ChatAsk& ask) {
  const JsonValue mode = allowed.At("mode");
  if (mode.String() != "auto" && mode.String() != "required") mode.Fail("'auto' or 'required'");
  if (mode.String() == "required") ask.choice = ToolChoice::kRequired;
  const std::vector<std::string> names = NamesIn(allowed.At("tools"), nested);
  Json kept = Json::Array();
  for (std::size_t i = 0; i < ask.tools.size(); ++i) {
    const Json* const function = ask.tools[i].Find("function");
    const Json* const name = function == nullptr ? nullptr : function->Find("name");
    if (name == nullptr || !name->IsString()) continue;
    if (std::ranges::find(names, name->AsString()) != names.end()) kept.push_back(ask.tools[i]);
  }
  ask.tools = std::move(kept);
}

Json& OptionsOf(ChatAsk& ask) {
  if (ask.options.IsNull()) ask.options = Json::Object();
  return ask.options;
}

}  // namespace

std::string TextInPlaceOf(const JsonValue& part) {
  const std::string type = part.At("type").String();
  if (type == "document" && Says(part, "source")) {
    const JsonValue source = part.At("source");
    if (source.IsObject() && source.At("type").String() == "text") {
      return source.At("data").String();
    }
  }
  if (type == "search_result") return SearchResultIn(part);
  if (type == "tool_reference" && Says(part, "tool_name")) {
    return fmt::format("[the tool {}]", part.At("tool_name").String());
  }
  return NameOfUnread(type);
}

std::string TextOfParts(const JsonValue& content, std::initializer_list<std::string_view> types,
                        UnreadParts unread) {
  if (content.IsString()) return content.String();
  if (!content.IsArray()) content.Fail("a text or an array of parts");
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue part = content.At(i);
    const std::string type = part.At("type").String();
    if (std::ranges::find(types, type) != types.end()) {
      text += part.At(type == "refusal" ? "refusal" : "text").String();
    } else if (unread == UnreadParts::kNamed) {
      text += TextInPlaceOf(part);
    } else {
      part.At("type").Fail(
          fmt::format("'{}': this model reads no other", fmt::join(types, "', '")));
    }
  }
  return text;
}

void PassOver(std::string_view what, std::string_view type, ChatAsk& ask) {
  constexpr std::size_t kMostKinds = 16, kLongestType = 64;
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  if (ask.passed_over.size() >= kMostKinds) return;
  const bool is_word = type.size() <= kLongestType && type.find_first_not_of(kLetters) == type.npos;
  ask.passed_over.push_back(is_word ? fmt::format("{} of type '{}'", what, type)
                                    : fmt::format("{} of a type that is no word", what));
}

void ReadOpenAiMessages(const JsonValue& list, ChatAsk& ask) {
  if (!list.IsArray() || list.size() == 0) list.Fail("an array of messages, at least one");
  if (list.size() > kMostMessages) list.Fail("fewer messages");
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue message = list.At(i);
    std::string role = message.At("role").String();
    if (role == "developer") role = "system";  // its newer name
    if (std::ranges::find(kRoles, role) == kRoles.end()) {
      message.At("role").Fail("'system', 'user', 'assistant' or 'tool'");
    }
    std::string content;
    if (role == "user" && !Says(message, "content")) {
      message.At("content").Fail("a text or an array of parts");
    }
    if (Says(message, "content")) {
      content = TextOfParts(message.At("content"), {"text", "refusal"}, UnreadParts::kNamed);
    }
    std::string more = MoreIn(message, role, ask);
    ask.chat.messages.push_back(
        {.role = std::move(role), .content = std::move(content), .more = std::move(more)});
  }
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
  if (type.String() == "allowed_tools") {
    return ReadAllowed(nested ? choice.At("allowed_tools") : choice, nested, ask);
  }
  if (type.String() != "function") {
    type.Fail("'function' or 'allowed_tools': this server has no other tools");
  }
  ask.choice = ToolChoice::kRequired;
  ask.only = (nested ? choice.At("function") : choice).At("name").String();
}

void ReadTemplateOptions(const JsonValue& body, ChatAsk& ask) {
  if (Says(body, "chat_template_kwargs")) {
    const JsonValue options = body.At("chat_template_kwargs");
    if (!options.IsObject()) options.Fail("an object");
    if (options.size() > kMostOptions)
      options.Fail(fmt::format("at most {} of them", kMostOptions));
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

void ReadThinking(const JsonValue& thinking, std::size_t max_tokens, ChatAsk& ask) {
  const JsonValue type = thinking.At("type");
  const bool is_on = type.String() == "enabled" || type.String() == "adaptive";
  if (!is_on && type.String() != "disabled") type.Fail("'enabled', 'adaptive' or 'disabled'");
  OptionsOf(ask)["enable_thinking"] = is_on;
  if (!is_on || !Says(thinking, "budget_tokens")) return;
  const JsonValue budget = thinking.At("budget_tokens");
  ask.most_reasoning = budget.Count(1, kMostTokensAsked);
  OptionsOf(ask)["thinking_budget"] = *ask.most_reasoning;  // for the templates that tell the model
  if (*ask.most_reasoning >= max_tokens) budget.Fail("less than max_tokens");
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
