// POST /v1/chat/completions: what a request says, and how its answers are shown. Pure.
#pragma once

#include <troupe/request.h>

#include <memory>
#include <string_view>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/chat_ask.h"
#include "server/openai_values.h"

namespace troupe {

struct ChatCall {
  ChatAsk ask;
  Request request;  // without its prompt, which is made of `ask`
  OpenAiCall call;
};

// `defaults`: of a request that says nothing, its seed drawn; max_tokens, if it says none.
Result<ChatCall> ReadChatCall(std::string_view body, const Request& defaults);

std::unique_ptr<AnswerFormat> MakeChatFormat(const ChatCall& call, OpenAiHead head,
                                             AnswerReading reading = {});

}  // namespace troupe
