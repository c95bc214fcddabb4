#include "text/answer_parts/tools_in_text.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace troupe {
namespace {

std::string TextAbout(const Json& tools) {
  std::string text =
      "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
      "You are provided with function signatures within <tools></tools> XML tags:\n<tools>";
  for (const Json& tool : tools.items()) text += fmt::format("\n{}", tool.Dump());
  return text +
         "\n</tools>\n\nFor each function call, return a json object with function name and "
         "arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": "
         "<function-name>, \"arguments\": <args-json-object>}\n</tool_call>";
}

Result<std::string> TextOfCalls(const Json& calls) {
  std::string text;
  if (!calls.IsArray()) return InvalidArgument("tool_calls: expected an array");
  for (const Json& call : calls.items()) {
    const Json* function = call.Find("function");
    const Json* name = function == nullptr ? nullptr : function->Find("name");
    if (name == nullptr) return InvalidArgument("tool_calls: a call without function.name");
    const Json* arguments = function->Find("arguments");
    std::string json = "{}";
    if (arguments != nullptr)
      json = arguments->IsString() ? arguments->AsString() : arguments->Dump();
    text += fmt::format("\n<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
                        name->Dump(), json);
  }
  return text;
}

void AddUsersText(std::string text, bool joins, std::vector<Message>& messages) {
  if (joins && !messages.empty() && messages.back().role == "user") {
    messages.back().content += fmt::format("\n{}", text);
  } else {
    messages.push_back({.role = "user", .content = std::move(text)});
  }
}

}  // namespace

Result<std::vector<Message>> WriteToolsAsText(std::span<const Message> messages,
                                              const Json& tools) {
  std::vector<Message> written;
  if (tools.IsArray() && tools.size() > 0) {
    written.push_back({.role = "system", .content = TextAbout(tools)});
  }
  bool after_tool = false;
  for (const Message& message : messages) {
    if (message.role == "tool") {
      AddUsersText(fmt::format("<tool_response>\n{}\n</tool_response>", message.content),
                   after_tool, written);
      after_tool = true;
      continue;
    }
    if (message.role == "user") {
      AddUsersText(message.content, after_tool, written);
    } else if (message.role == "system" && written.size() == 1 && written[0].role == "system") {
      written[0].content = message.content + "\n\n" + written[0].content;
    } else {
      written.push_back({.role = message.role, .content = message.content});
      const auto more = Json::Parse(message.more.empty() ? "{}" : message.more);
      const Json* calls = more ? more->Find("tool_calls") : nullptr;
      if (calls != nullptr && !calls->IsNull()) {
        TROUPE_ASSIGN_OR_RETURN(std::string text, TextOfCalls(*calls));
        std::string& content = written.back().content;
        content += content.empty() && !text.empty() ? text.substr(1) : text;
      }
    }
    after_tool = false;
  }
  return written;
}

}  // namespace troupe
