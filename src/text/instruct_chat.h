// Renders the [INST] family of chat prompts, in which a turn is the user's message and the answer
// to it, and a system message goes inside the first: Llama 2 and Mistral. For chat_template.cc.
#pragma once

#include <span>

#include "text/chat_format.h"
#include "text/chat_writer.h"

namespace troupe {

bool IsInstructFormat(ChatFormat format);

// The answer begins right after the last "[/INST]": there is nothing to add for it.
void WriteInstructChat(ChatFormat format, std::span<const ChatTurn> turns, ChatWriter& writer);

}  // namespace troupe
