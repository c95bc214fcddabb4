#include "server/openai_chat.h"

#include <tuple>
#include <utility>

#include "server/chat_fields.h"
#include "server/request_body.h"
#include "server/sampling_fields.h"

namespace troupe {
namespace {

// What this server does not do must not be passed over: the answer would be another one.
void RefuseUnknown(const JsonValue& body) {
  if (Says(body, "modalities")) {
    for (std::size_t i = 0; i < body.At("modalities").size(); ++i) {
      const JsonValue modality = body.At("modalities").At(i);
      if (modality.String() != "text") modality.Fail("'text'");
    }
  }
  // Clients that know the older names send them empty beside the newer ones.
  if (Says(body, "functions") && body.At("functions").size() > 0) {
    body.At("functions").Fail("none: use tools");
  }
  if (Says(body, "function_call")) {
    const JsonValue choice = body.At("function_call");
    const bool calls_none =
        choice.IsString() && (choice.String() == "auto" || choice.String() == "none");
    if (!calls_none) choice.Fail("'auto' or 'none': use tool_choice");
  }
  for (const auto& [key, instead] :
       {std::pair("audio", "nothing: answers are text"),
        std::pair("web_search_options", "nothing: this server searches no web")}) {
    if (Says(body, key)) body.At(key).Fail(instead);
  }
  if (Says(body, "documents") && body.At("documents").size() > 0) {
    body.At("documents").Fail("none: write them into the messages");
  }
  for (const auto& [key, usual, instead] :
       {std::tuple("echo", false, "false: the last message is the client's own"),
        std::tuple("add_special_tokens", false, "false: the template writes them"),
        std::tuple("parse_tool_calls", true, "true: tool_choice 'none' leaves no calls"),
        std::tuple("include_reasoning", true, "true: enable_thinking false leaves none")}) {
    if (Says(body, key) && body.At(key).Flag() != usual) body.At(key).Fail(instead);
  }
}

// The functions among them, as they are.
Json ToolsIn(const JsonValue& list, ChatAsk& ask) {
  if (!list.IsArray()) list.Fail("an array of tools");
  Json tools = Json::Array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue tool = list.At(i);
    const std::string type = tool.At("type").String();
    if (type == "function") {
      tools.push_back(tool.raw());
    } else {
      PassOver("a tool", type, ask);
    }
  }
  return tools;
}

ChatAsk AskIn(const JsonValue& body) {
  ChatAsk ask;
  ReadOpenAiMessages(body.At("messages"), ask);
  if (Says(body, "continue_final_message")) {
    ask.chat.goes_on = body.At("continue_final_message").Flag();
    if (ask.chat.goes_on && ask.chat.messages.back().role != "assistant") {
      body.At("continue_final_message").Fail("false where the last message is not the assistant's");
    }
  }
  // vLLM's clients say both of an answer that is gone on with.
  if (Says(body, "add_generation_prompt")) {
    const JsonValue begins = body.At("add_generation_prompt");
    if (!begins.Flag() && !ask.chat.goes_on) {
      begins.Fail("true where continue_final_message is not: the answer is the assistant's");
    }
  }
  if (Says(body, "tools")) ask.tools = ToolsIn(body.At("tools"), ask);
  if (Says(body, "tool_choice")) ReadToolChoice(body.At("tool_choice"), /*nested=*/true, ask);
  if (Says(body, "parallel_tool_calls")) ask.parallel = body.At("parallel_tool_calls").Flag();
  ReadTemplateOptions(body, ask);
  if (Says(body, "thinking")) ReadThinking(body.At("thinking"), kMostTokensAsked + 1, ask);
  return ask;
}

ChatCall CallOf(const JsonValue& body, const Request& defaults) {
  if (!body.IsObject()) body.Fail("an object");
  ChatCall call{.ask = AskIn(body), .request = defaults, .call = {}};
  for (const char* key : {"max_tokens", "max_completion_tokens", "n_predict"}) {
    if (!Says(body, key)) continue;
    call.request.max_tokens = CountOrNoLimit(body.At(key), kMostTokensAsked, defaults.max_tokens);
  }
  ReadGeneration(body, call.request);
  ReadShown(body, call.call);
  const bool tells = Says(body, "logprobs") && body.At("logprobs").Flag();
  if (tells) call.call.logprobs = 0;
  ReadProbs(body, call.call);
  if (Says(body, "top_logprobs")) {
    const std::size_t top = body.At("top_logprobs").Count(0, kMostTopLogprobs);
    if (!call.call.logprobs && top > 0) {
      body.At("top_logprobs").Fail("0 where logprobs is not true");
    }
    if (call.call.logprobs) call.call.logprobs = top;
  }
  RefuseUnknown(body);
  return call;
}

}  // namespace

Result<ChatCall> ReadChatCall(std::string_view body, const Request& defaults) {
  return ReadBody<ChatCall>(body, [&](const JsonValue& json) { return CallOf(json, defaults); });
}

}  // namespace troupe
