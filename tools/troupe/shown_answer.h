// Answers of a model for whoever sits at the terminal: text on stdout as it comes, and Ctrl-C ends
// the answer (interrupt.h; a guard must live).
#pragma once

#include <troupe/model.h>

#include <string_view>

namespace troupe {

// At once. False: stdout takes no more.
bool PrintNow(std::string_view text);

// Waits for the end; an interrupt cancels.
Result<Answer> AnswerOf(Model& model, Request request, Callbacks callbacks);

}  // namespace troupe
