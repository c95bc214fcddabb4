// Prompts that are texts or tokens, in the fields of requests. For readers (base/json_value.h).
#pragma once

#include <troupe/request.h>

#include <cstddef>
#include <vector>

#include "base/json_value.h"

namespace troupe {

// Of text that becomes tokens, in all prompts of a request: the tokens take four bytes each, and
// may be as many as its bytes.
inline constexpr std::size_t kMostPromptBytes = 8 << 20;

// Ends the reader where that is exceeded.
void CheckPromptBytes(const JsonValue& at, std::size_t bytes);

// An array of token ids.
std::vector<TokenId> TokensIn(const JsonValue& ids);
// A text, an array of texts, of token ids, or of arrays of these: a prompt for each, `most` at
// most.
std::vector<Prompt> PromptsIn(const JsonValue& prompt, std::size_t most);
// How many PromptsIn gives, if it accepts them.
std::size_t CountPrompts(const JsonValue& prompt);

}  // namespace troupe
