// POST /v1/messages and /v1/messages/count_tokens, as Anthropic's clients send them: what a request
// says, and how its answer is shown. Pure.
#pragma once

#include <troupe/request.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/chat_ask.h"

namespace troupe {

struct MessagesCall {
  ChatAsk ask;      // its messages, the system's first
  Request request;  // without its prompt
  bool stream = false;
  bool progress = false;           // of a stream: tokens of the prompt read so far
  std::vector<std::string> stops;  // the client's; the chat format may have its own
  // The first event tells them; whoever runs the request fills them in.
  std::size_t prompt_tokens = 0;
};

enum class MessagesKind { kAnswer, kCount };

// `defaults`: of a request that says nothing, its seed drawn.
Result<MessagesCall> ReadMessagesCall(std::string_view body, MessagesKind kind,
                                      const Request& defaults);

struct MessagesHead {
  std::string id;
  std::string model;
  std::uint64_t seed = 0;
};

std::unique_ptr<AnswerFormat> MakeMessagesFormat(const MessagesCall& call, MessagesHead head,
                                                 AnswerReading reading = {});

}  // namespace troupe
