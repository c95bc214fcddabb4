// Errors as the clients of the APIs expect them: a Status to a status of HTTP and a body with a
// message. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/http/http_message.h"

namespace troupe {

enum class ErrorStyle { kOpenAi, kAnthropic };
ErrorStyle StyleOf(std::string_view path);  // of the API that it belongs to
// Also by what Anthropic's clients say of themselves, as some paths are of both.
ErrorStyle StyleOf(const HttpRequest& request);

// A prompt that is longer than the context, in the words of the API, by which its clients know that
// a talk is to be made shorter.
Status PromptTooLong(std::size_t tokens, std::size_t context, ErrorStyle style);

// 400 for what could never be answered, 429 with Retry-After where the queue is full, 503 while the
// server ends, 5xx for what is not the client's fault.
int HttpStatusOf(const Status& status);

// `http`: the status of HTTP that it goes with, where that is not the usual one.
std::string ErrorBody(const Status& status, ErrorStyle style = ErrorStyle::kOpenAi,
                      std::optional<int> http = std::nullopt);
// 404, with OpenAI's code for it.
HttpResponse NoSuchModel(std::string_view asked, std::string_view own, ErrorStyle style);
HttpResponse ErrorResponse(const Status& status, ErrorStyle style = ErrorStyle::kOpenAi);
// What such a response was made of, in OpenAI's style, as far as it tells.
Status StatusIn(const HttpResponse& error);

}  // namespace troupe
