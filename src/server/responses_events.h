// What the events of a stream of /v1/responses are made of, whoever tells them: the format of the
// answer, and before it the request that waits for a model. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "server/openai_values.h"

namespace troupe {

// `number`: of the events of this stream before it.
std::string ResponsesEvent(std::string_view type, std::uint64_t number, const Json& fields);

// A response without output, and without what it repeats of the request.
Json ResponseJson(const OpenAiHead& head, std::string_view status);

// The `error` of a response that failed.
Json ResponseFailure(const Status& status);

}  // namespace troupe
