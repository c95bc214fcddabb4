#include "troupe/shown_answer.h"

#include <chrono>
#include <cstdio>
#include <optional>
#include <utility>

#include "troupe/interrupt.h"

namespace troupe {
namespace {

// A signal wakes nobody who waits for an answer.
constexpr std::chrono::milliseconds kInterruptLooks(20);

}  // namespace

bool PrintNow(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

Result<Answer> AnswerOf(Model& model, Request request, Callbacks callbacks) {
  TROUPE_ASSIGN_OR_RETURN(Generation generation,
                          model.Start(std::move(request), std::move(callbacks)));
  std::optional<Result<Answer>> answer;
  while (!(answer = generation.WaitFor(kInterruptLooks))) {
    if (InterruptGuard::interrupted()) generation.Cancel();
  }
  return *std::move(answer);
}

}  // namespace troupe
