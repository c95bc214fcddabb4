// What a server says of an error in its body, for those who ask servers: OpenAI's shape, which ours
// has, and llama.cpp's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace troupe {

// Nothing: it tells of no error.
std::optional<std::string> ErrorMessageOf(const Json& body);
// Its message, or the beginning of the body.
std::string ErrorMessageIn(std::string_view body);

}  // namespace troupe
