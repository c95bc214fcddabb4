#include "troupe/talk_file.h"

#include <optional>
#include <utility>

#include "base/json_value.h"
#include "server/chat_fields.h"

namespace troupe {

Json TalkRecord(const std::vector<Message>& messages) {
  Json list = Json::Array();
  for (const Message& message : messages) {
    Json one = {{"role", message.role}, {"content", message.content}};
    if (!message.more.empty()) {
      const std::optional<Json> more = Json::Parse(message.more);
      if (more) one.Update(*more);
    }
    list.push_back(std::move(one));
  }
  return {{"messages", std::move(list)}};
}

Result<std::vector<Message>> ParseTalk(const std::string& name, std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(ChatAsk ask, ReadJson<ChatAsk>(name, text, [](JsonValue json) {
                            ChatAsk read;
                            ReadOpenAiMessages(json.At("messages"), read);
                            return read;
                          }));
  return std::move(ask.chat.messages);
}

}  // namespace troupe
