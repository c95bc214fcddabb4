#include "troupe/chat.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <utility>

#include "api/model_access.h"
#include "base/today.h"
#include "server/chat_ask.h"
#include "troupe/bounded_line.h"
#include "troupe/interrupt.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"
#include "troupe/shown_answer.h"

namespace troupe {
namespace {

// Shows an answer's parts as they come.
class AnswerShow {
 public:
  explicit AnswerShow(const AnswerReading& reading) : parser_(reading.Parser()) {}

  bool Push(std::string_view text) {
    pushed_ += text.size();
    return Show(parser_.Push(text));
  }
  // `text`: all of it, of which an interrupt may have kept the last piece back; empty if it failed.
  void Finish(std::string_view text) {
    if (text.size() > pushed_) Push(text.substr(pushed_));
    Show(parser_.Finish());
    EndThought();
  }

 private:
  bool Show(const AnswerEvents& events) {
    for (const AnswerEvent& event : events) {
      if (event.kind == AnswerEvent::Kind::kReasoning) {
        if (!std::exchange(thinking_, true) && dimmed_) Remark("\033[2m");
        Remark("{}", event.text);
        continue;
      }
      EndThought();
      if (!PrintNow(event.text)) return false;
    }
    return true;
  }

  void EndThought() {
    if (std::exchange(thinking_, false)) Remark("{}\n", dimmed_ ? "\033[0m" : "");
  }

  AnswerParser parser_;
  const bool dimmed_ = ::isatty(STDERR_FILENO) == 1;
  std::size_t pushed_ = 0;
  bool thinking_ = false;
};

// What the talk goes on with: content as such, and what the model has thought for those templates
// that want to know.
Message AssistantMessage(const AnswerReading& reading, const Answer& answer) {
  Message message{.role = "assistant", .content = {}};
  std::string thought;
  for (const AnswerPart& part : PartsOf(reading, answer.text)) {
    (part.kind == AnswerEvent::Kind::kReasoning ? thought : message.content) += part.text;
  }
  if (!thought.empty()) message.more = Json{{"reasoning_content", thought}}.Dump();
  return message;
}

class Talk {
 public:
  Talk(Model& model, const Request& each, const std::string& system)
      : model_(model),
        engine_(ModelAccess::EngineOf(model)),
        each_(each),
        system_(system),
        most_bytes_(engine_.plan().context() * engine_.tokenizer().longest_token()) {
    BeginAnew();
  }

  void Run() {
    if (terminal_) {
      Remark(
          "Chat format {}. A line is a message; /new forgets the talk; Ctrl-C ends an answer, "
          "Ctrl-D the program.\n",
          engine_.chat()->name());
    }
    for (;;) {
      if (terminal_) Remark("> ");
      // What cannot fit is refused before it takes memory that no plan knows of.
      const std::optional<BoundedLine> line = TakeLine(std::cin, most_bytes_);
      if (!line) return;
      if (line->too_long) {
        Remark(
            "a message of more than {} bytes, and the context has {} tokens (--ctx asks for more); "
            "the message is left out\n",
            most_bytes_, engine_.plan().context());
      } else if (line->text == "/new") {
        BeginAnew();
      } else if (!line->text.empty()) {
        chat_.messages.push_back({.role = "user", .content = line->text});
        // A message that cannot be taken is answered with the reason; the talk goes on without it.
        if (const Status status = AnswerLast(); !status.ok()) {
          Remark("{}; the message is left out\n", status.message());
          chat_.messages.pop_back();
        }
      }
    }
  }

 private:
  void BeginAnew() {
    chat_.messages.clear();
    if (!system_.empty()) chat_.messages.push_back({.role = "system", .content = system_});
  }

  Status AnswerLast() {
    Request request = each_;
    TROUPE_ASSIGN_OR_RETURN(
        const AnswerReading reading,
        PrepareChat({.chat = chat_}, Today(), engine_.tokenizer(), engine_.chat(), request));
    const std::size_t length = std::get<std::vector<TokenId>>(request.prompt).size();
    if (length >= engine_.plan().context()) {
      return Error(Code::kResourceExhausted,
                   "the talk is full: {} tokens with this message, and the context has {}; /new "
                   "begins another, --ctx asks for a longer one",
                   length, engine_.plan().context());
    }
    const InterruptGuard guard;
    AnswerShow show(reading);
    const Result<Answer> answer =
        AnswerOf(model_, std::move(request),
                 {.on_piece = [&show](const Piece& piece) { return show.Push(piece.text); }});
    show.Finish(answer.ok() ? answer->text : "");
    PrintNow("\n");
    TROUPE_RETURN_IF_ERROR(answer.status());  // a read that failed, say
    if (answer->finish == FinishReason::kCancelled && answer->tokens.empty()) {
      return Error(Code::kCancelled, "interrupted before an answer began");
    }
    const bool cut =
        answer->finish == FinishReason::kLength || answer->finish == FinishReason::kContextFull;
    if (terminal_ || cut) Remark("{}\n", FiguresLine(engine_, *answer));
    chat_.messages.push_back(AssistantMessage(reading, *answer));
    return OkStatus();
  }

  Model& model_;
  Engine& engine_;
  const Request& each_;
  const std::string& system_;
  const std::size_t most_bytes_;
  const bool terminal_ = ::isatty(STDIN_FILENO) == 1;
  Conversation chat_;
};

}  // namespace

Status Chat(Model& model, const Request& each, const std::string& system) {
  TROUPE_RETURN_IF_ERROR(ModelAccess::EngineOf(model).chat().status());
  Talk(model, each, system).Run();
  return OkStatus();
}

}  // namespace troupe
