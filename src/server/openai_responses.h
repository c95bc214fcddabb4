// POST /v1/responses: what a request says, and how its answer is shown. Nothing is kept from one
// request to the next: each brings all of its talk. Pure.
#pragma once

#include <troupe/request.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/answer_format.h"
#include "server/chat_ask.h"
#include "server/openai_values.h"

namespace troupe {

struct ResponsesCall {
  ChatAsk ask;
  Request request;  // without its prompt, which is made of `ask`
  bool stream = false;
  bool progress = false;  // of a stream: tokens of the prompt read so far
  // Fields of the request that the response repeats: the text of an object. As values it would take
  // many times as much, until the answer ends.
  std::string echo = "{}";
};

// `defaults`: of a request that says nothing, its seed drawn; max_tokens, if it says none.
Result<ResponsesCall> ReadResponsesCall(std::string_view body, const Request& defaults);

// `told`: events that its stream has told already, the response's creation first.
std::unique_ptr<AnswerFormat> MakeResponsesFormat(const ResponsesCall& call, OpenAiHead head,
                                                  AnswerReading reading = {},
                                                  std::uint64_t told = 0);

}  // namespace troupe
