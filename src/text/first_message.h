// Where the first message of a chat ends in its tokens, whoever's template wrote it: what comes
// before, the system's message with its tools, other chats often begin with as well. Pure.
#pragma once

#include <cstddef>
#include <span>

#include "text/tokenizer.h"

namespace troupe {

// Tokens before the second message; 0: it has fewer than two beside the answer that is to come, or
// its messages do not begin with a special token each. Ids that are none are passed over.
std::size_t EndOfFirstMessage(std::span<const TokenId> prompt, const Tokenizer& tokenizer);

}  // namespace troupe
