// Talking with a model in the terminal or through a pipe: a line is a message, end of input ends.
// Prompts and answers are the server's (server/chat_ask.h): answers go to stdout, and what a model
// thinks before them to stderr. What a talk has said before, the prefix cache finds.
#pragma once

#include <string>

#include <troupe/model.h>
#include "base/status.h"

namespace troupe {

// `each`: what every answer is asked for with, without a prompt.
Status Chat(Model& model, const Request& each, const std::string& system);

}  // namespace troupe
