#include "text/jinja/chat_prompt.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "text/jinja/json_text.h"

namespace troupe::jinja {
namespace {

constexpr std::string_view kKnownRoles[] = {"system",    "developer", "user",
                                            "assistant", "tool",      "function"};

Status CheckMessages(const Json& messages) {
  if (!messages.IsArray()) return InvalidArgument("messages: no list, expected a list");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json* role = messages[i].Find("role");
    if (role == nullptr || !role->IsString()) {
      return InvalidArgument("messages[{}]: no role, expected an object with one", i);
    }
  }
  return OkStatus();
}

// {"function": {"name": ..., "arguments": "{...}"}} with the arguments as an object.
Json WithReadArguments(const Json& call) {
  Json read = call;
  const Json* function = call.Find("function");
  const Json* arguments = (function != nullptr ? *function : call).Find("arguments");
  if (arguments == nullptr || !arguments->IsString()) return read;
  const std::optional<Json> parsed = Json::Parse(arguments->AsString());
  if (!parsed || !parsed->IsObject()) return read;
  Json& holder = function != nullptr ? read["function"] : read;
  holder["arguments"] = *parsed;
  return read;
}

Json WithReadCalls(const Json& message) {
  const Json* calls = message.Find("tool_calls");
  if (calls == nullptr || !calls->IsArray()) return message;
  Json read = Json::Array();
  for (const Json& call : calls->items()) {
    read.push_back(call.IsObject() ? WithReadArguments(call) : call);
  }
  Json changed = message;
  changed["tool_calls"] = std::move(read);
  return changed;
}

Value RoleValue(const std::string& role) {
  const bool known =
      std::find(std::begin(kKnownRoles), std::end(kKnownRoles), role) != std::end(kKnownRoles);
  return Value::String(MarkedText(role, known ? Origin::kTemplate : Origin::kOutside));
}

Result<Value> MessageValue(const Json& message, Meter& meter) {
  const Json read = WithReadCalls(message);
  DictBuilder dict;
  for (const Json::Member& member : read.members()) {
    Value value = member.key == "role" ? RoleValue(member.value.AsString())
                                       : FromJson(member.value, Origin::kOutside);
    TROUPE_RETURN_IF_ERROR(dict.Set(member.key, std::move(value), meter));
  }
  return dict.Take();
}

// Without the first token, if it is the BOS that the tokenizer is to write.
void CutBos(const std::string& bos, std::vector<TextSegment>& segments) {
  if (bos.empty() || segments.empty()) return;
  TextSegment& first = segments.front();
  if (!first.is_template || !first.text.starts_with(bos)) return;
  first.text.erase(0, bos.size());
  if (first.text.empty()) segments.erase(segments.begin());
}

}  // namespace

Result<Json> MessagesToJson(std::span<const Message> messages) {
  Json list = Json::Array();
  for (const Message& message : messages) {
    Json json = {{"role", message.role}, {"content", message.content}};
    if (!message.more.empty()) {
      const auto more = Json::Parse(message.more);
      if (!more || !more->IsObject()) {
        return InvalidArgument("messages[{}]: more is no JSON object", list.size());
      }
      json.Update(*more);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Result<std::vector<TextSegment>> RenderChatPrompt(const Template& chat_template,
                                                  const ChatPrompt& prompt,
                                                  const RenderLimits& limits) {
  TROUPE_RETURN_IF_ERROR(CheckMessages(prompt.messages));
  Meter meter(limits);
  Values messages;
  for (const Json& message : prompt.messages.items()) {
    TROUPE_ASSIGN_OR_RETURN(Value value, MessageValue(message, meter));
    messages.push_back(std::move(value));
  }
  TROUPE_ASSIGN_OR_RETURN(Value list, MakeList(std::move(messages), meter));

  TemplateValues values;
  values.now = prompt.now;
  values.names.emplace_back("messages", std::move(list));
  values.names.emplace_back("tools", FromJson(prompt.tools, Origin::kOutside));
  values.names.emplace_back("documents", Value::MakeNone());
  values.names.emplace_back("add_generation_prompt", Value::Bool(prompt.add_generation_prompt));
  const std::pair<const char*, const std::optional<std::string>&> tokens[] = {
      {"bos_token", prompt.bos_token},
      {"eos_token", prompt.eos_token},
      {"unk_token", prompt.unk_token},
      {"pad_token", prompt.pad_token}};
  for (const auto& [name, text] : tokens) {
    if (text) values.names.emplace_back(name, Value::String(*text));
  }
  for (const Json::Member& option : prompt.options.members()) {
    values.names.emplace_back(option.key, FromJson(option.value, Origin::kOutside));
  }
  TROUPE_ASSIGN_OR_RETURN(const MarkedText text, chat_template.RenderMarked(values, limits));
  std::vector<TextSegment> segments = text.Segments();
  if (prompt.tokenizer_adds_bos && prompt.bos_token) CutBos(*prompt.bos_token, segments);
  return segments;
}

}  // namespace troupe::jinja
