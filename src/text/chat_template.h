// Renders the messages of a chat as the prompt form that a model was trained on. The result is
// segments, so that the content of a message is never read as special tokens. The tokenizer adds
// BOS before it (add_special); it is not part of the prompt.
#pragma once

#include <troupe/request.h>

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "text/chat_format.h"
#include "text/text_segment.h"

namespace troupe {

// add_generation_prompt: ends where the assistant's answer begins. Fails on another role.
Result<std::vector<TextSegment>> RenderChat(ChatFormat format, std::span<const Message> messages,
                                            bool add_generation_prompt);

// Texts at which an answer ends even where the vocabulary has no such token (stop_strings.h).
std::vector<std::string> ChatStopStrings(ChatFormat format);

}  // namespace troupe
