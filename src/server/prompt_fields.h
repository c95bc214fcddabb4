// Prompts that are texts or tokens, in the fields of requests.
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <vector>

#include "base/json_value.h"

namespace troupe {

// An array of token ids.
std::vector<TokenId> TokensIn(const JsonValue& ids);
// A text, an array of texts, of token ids, or of arrays of these: a prompt for each, `most` at
// most. For readers (base/json_value.h).
std::vector<Prompt> PromptsIn(const JsonValue& prompt, std::size_t most);
// How many PromptsIn gives, if it accepts them.
std::size_t CountPrompts(const JsonValue& prompt);

}  // namespace troupe
