// Answers of a model for whoever sits at the terminal: text on stdout as it comes, a bar on stderr
// while a prompt is read, layer by layer, and Ctrl-C ends the answer (interrupt.h; a guard must
// live).
#pragma once

#include <troupe/model.h>

#include <string>
#include <string_view>

namespace troupe {

// At once. False: stdout takes no more.
bool PrintNow(std::string_view text);

// As it may be written to that descriptor: what a model or a file says must not command a terminal.
std::string ShownText(std::string_view text, int descriptor);

// Waits for the end; an interrupt cancels.
Result<Answer> AnswerOf(Model& model, Request request, Callbacks callbacks);

}  // namespace troupe
