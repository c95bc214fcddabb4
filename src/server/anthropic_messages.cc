#include "server/anthropic_messages.h"

#include <utility>

#include "base/json.h"
#include "server/chat_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"

namespace troupe {
namespace {

// Claude Code begins its system message with a block that changes with each request and says who
// pays: no model is to read it, and with it no two requests would begin alike.
bool SaysWhoPays(const JsonValue& block) {
  return block.Has("text") && block.At("text").IsString() &&
         block.At("text").String().starts_with("x-anthropic-billing-header");
}

std::string SystemIn(const JsonValue& system) {
  if (!system.IsArray()) return TextOfParts(system, {"text"});
  std::string text;
  for (std::size_t i = 0; i < system.size(); ++i) {
    const JsonValue block = system.At(i);
    if (SaysWhoPays(block)) continue;
    if (!text.empty()) text += '\n';
    const JsonValue type = block.At("type");
    if (type.String() != "text") type.Fail("'text'");
    text += block.At("text").String();
  }
  return text;
}

Message ResultOf(const JsonValue& block) {
  std::string text;
  if (Says(block, "content")) {
    text = TextOfParts(block.At("content"), {"text"}, UnreadParts::kNamed);
  }
  if (Says(block, "is_error") && block.At("is_error").Flag()) text = "Error: " + text;
  const Json more = {{"tool_call_id", block.At("tool_use_id").String()}};
  return {.role = "tool", .content = std::move(text), .more = more.Dump()};
}

// What a turn of the user's holds: results of tools first, each a message of its own, then text.
void AddUsersTurn(const JsonValue& content, std::vector<Message>& turns) {
  if (content.IsString()) {
    turns.push_back({.role = "user", .content = content.String()});
    return;
  }
  if (!content.IsArray()) content.Fail("a text or an array of blocks");
  std::string text;
  bool has_text = content.size() == 0;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue block = content.At(i);
    const JsonValue type = block.At("type");
    if (type.String() == "tool_result") {
      turns.push_back(ResultOf(block));
    } else if (type.String() == "text") {
      text += block.At("text").String();
      has_text = true;
    } else {
      text += TextInPlaceOf(block);
      has_text = true;
    }
  }
  if (has_text) turns.push_back({.role = "user", .content = std::move(text)});
}

// Of answers that Anthropic's own server gave: what it alone can read, or did itself.
bool IsOfItsServer(const std::string& type) {
  return type == "redacted_thinking" || type == "server_tool_use" || type.starts_with("mcp_") ||
         type.ends_with("_tool_result");
}

Message AssistantsTurn(const JsonValue& content, ChatAsk& ask) {
  Message turn = {.role = "assistant", .content = {}};
  if (content.IsString()) {
    turn.content = content.String();
    return turn;
  }
  if (!content.IsArray()) content.Fail("a text or an array of blocks");
  Json calls = Json::Array();
  std::string reasoning;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const JsonValue block = content.At(i);
    const JsonValue type = block.At("type");
    if (type.String() == "text") {
      turn.content += block.At("text").String();
    } else if (type.String() == "thinking") {
      reasoning += block.At("thinking").String();
    } else if (type.String() == "tool_use") {
      calls.push_back(CallJson(block.At("id").String(), block.At("name").String(),
                               Says(block, "input") ? ArgumentsIn(block.At("input")) : "{}"));
    } else if (!IsOfItsServer(type.String())) {
      PassOver("a block", type.String(), ask);
    }
  }
  Json more = Json::Object();
  if (!reasoning.empty()) more["reasoning_content"] = reasoning;
  if (calls.size() > 0) more["tool_calls"] = std::move(calls);
  if (more.size() > 0) turn.more = more.Dump();
  return turn;
}

std::vector<Message> TurnsIn(const JsonValue& body, ChatAsk& ask) {
  std::vector<Message> turns;
  if (Says(body, "system")) {
    std::string system = SystemIn(body.At("system"));
    if (!system.empty()) turns.push_back({.role = "system", .content = std::move(system)});
  }
  const JsonValue list = body.At("messages");
  if (!list.IsArray() || list.size() == 0) list.Fail("an array of messages, at least one");
  if (list.size() > kMostMessages) list.Fail("fewer messages");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue role = list.At(i).At("role");
    const JsonValue content = list.At(i).At("content");
    if (role.String() == "user") {
      AddUsersTurn(content, turns);
    } else if (role.String() == "assistant") {
      turns.push_back(AssistantsTurn(content, ask));
    } else if (role.String() == "system") {  // Claude Code counts tokens in such messages
      turns.push_back({.role = "system", .content = SystemIn(content)});
    } else {
      role.Fail("'user' or 'assistant'");
    }
  }
  return turns;
}

// Those that Anthropic's server runs, or knows the arguments of, are passed over beside others. A
// request with no others is for them alone.
Json ClientsToolsIn(const JsonValue& list, ChatAsk& ask) {
  if (!list.IsArray()) list.Fail("an array of tools");
  Json tools = Json::Array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue tool = list.At(i);
    if (Says(tool, "type") && tool.At("type").String() != "custom") {
      PassOver("a tool", tool.At("type").String(), ask);
      continue;
    }
    Json function = {{"name", tool.At("name").String()}};
    if (Says(tool, "description")) function["description"] = tool.At("description").String();
    function["parameters"] = tool.At("input_schema").raw();
    if (Says(tool, "strict")) function["strict"] = tool.At("strict").Flag();
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  if (tools.size() == 0 && list.size() > 0) {
    list.At(std::size_t{0}).At("type").Fail("'custom': this server has no tools of its own");
  }
  return tools;
}

void ReadChoice(const JsonValue& choice, ChatAsk& ask) {
  const std::string type = choice.At("type").String();
  if (type == "any" || type == "tool") {
    ask.choice = ToolChoice::kRequired;
    if (type == "tool") ask.only = choice.At("name").String();
  } else if (type == "none") {
    ask.choice = ToolChoice::kNone;
  } else if (type != "auto") {
    choice.At("type").Fail("'auto', 'any', 'tool' or 'none'");
  }
  if (Says(choice, "disable_parallel_tool_use")) {
    ask.parallel = !choice.At("disable_parallel_tool_use").Flag();
  }
}

// The format under its newer name and its older one, and how hard to think.
void ReadOutput(const JsonValue& body, MessagesKind kind, MessagesCall& call) {
  const auto set = [&](const JsonValue& format) {
    if (call.request.rule) format.Fail("nothing: another field says what the answer must be");
    call.request.rule = RuleOfFormat(format);
  };
  const bool counts = kind == MessagesKind::kCount;
  if (!counts && Says(body, "output_format")) set(body.At("output_format"));
  if (!Says(body, "output_config")) return;
  const JsonValue config = body.At("output_config");
  if (!config.IsObject()) config.Fail("an object");
  if (Says(config, "effort")) SetEffort(config.At("effort"), call.ask);
  if (!counts && Says(config, "format")) set(config.At("format"));
}

MessagesCall MessagesCallFrom(const JsonValue& body, MessagesKind kind, const Request& defaults) {
  if (!body.IsObject()) body.Fail("an object");
  MessagesCall call{.ask = {}, .request = defaults};
  call.ask.chat.messages = TurnsIn(body, call.ask);
  call.ask.chat.goes_on = call.ask.chat.messages.back().role == "assistant" &&
                          call.ask.chat.messages.back().more.empty();
  if (Says(body, "tools")) call.ask.tools = ClientsToolsIn(body.At("tools"), call.ask);
  if (Says(body, "mcp_servers") && body.At("mcp_servers").size() > 0) {
    body.At("mcp_servers").Fail("none: this server calls no other");
  }
  if (Says(body, "tool_choice")) ReadChoice(body.At("tool_choice"), call.ask);
  ReadTemplateOptions(body, call.ask);
  const bool counts = kind == MessagesKind::kCount;
  if (!counts) call.request.max_tokens = body.At("max_tokens").Count(1, kMostTokensAsked);
  if (Says(body, "thinking")) {
    ReadThinking(body.At("thinking"), counts ? kMostTokensAsked + 1 : call.request.max_tokens,
                 call.ask);
  }
  if (!counts) ReadGeneration(body, call.request);
  ReadOutput(body, kind, call);
  if (counts) return call;
  if (Says(body, "stop_sequences")) call.request.stop = StopsIn(body.At("stop_sequences"));
  call.stops = call.request.stop;
  if (Says(body, "stream")) call.stream = body.At("stream").Flag();
  if (Says(body, "return_progress")) call.progress = body.At("return_progress").Flag();
  return call;
}

}  // namespace

Result<MessagesCall> ReadMessagesCall(std::string_view body, MessagesKind kind,
                                      const Request& defaults) {
  return ReadBody<MessagesCall>(
      body, [&](const JsonValue& json) { return MessagesCallFrom(json, kind, defaults); });
}

}  // namespace troupe
