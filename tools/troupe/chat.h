// Talking with a model in the terminal or through a pipe, as people know it from other programs:
// messages, commands that begin with a slash (chat_command.h), end of input ends. Prompts and
// answers are the server's (server/chat_ask.h): answers go to stdout, and what a model thinks
// before them to stderr. What a talk has said before, the prefix cache finds.
#pragma once

#include <troupe/model.h>

#include <optional>
#include <string>

#include "base/json.h"
#include "base/status.h"

namespace troupe {

struct ChatOptions {
  std::string system;                // the system's message; empty: none
  std::optional<std::string> first;  // the first message; then those that are read
  bool shows_text = true;            // answers, on stdout
  bool tells_figures = true;         // of each answer, on stderr
  bool records = false;              // each answer with its figures
};

struct TalkEnd {
  Json record;               // the talk (talk_file.h) and, if asked for, its answers
  bool interrupted = false;  // by a signal other than Ctrl-C
};

// `each`: what every answer is asked for with, without a prompt.
Result<TalkEnd> Chat(Model& model, const Request& each, const ChatOptions& options);

}  // namespace troupe
