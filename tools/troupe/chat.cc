#include "troupe/chat.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "api/model_access.h"
#include "base/today.h"
#include "server/chat_ask.h"
#include "troupe/chat_command.h"
#include "troupe/counted.h"
#include "troupe/interrupt.h"
#include "troupe/message_reader.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"
#include "troupe/shown_answer.h"
#include "troupe/talk_file.h"
#include "troupe/talk_window.h"
#include "troupe/terminal_kind.h"
#include "troupe/terminal_reader.h"
#include "troupe/text_input.h"

namespace troupe {
namespace {

// Shows an answer's parts as they come.
class AnswerShow {
 public:
  AnswerShow(const AnswerReading& reading, bool shows_text)
      : parser_(reading.Parser()), shows_text_(shows_text) {}

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
        Remark("{}", ShownText(event.text, STDERR_FILENO));
        continue;
      }
      EndThought();
      if (shows_text_ && !PrintNow(event.text)) return false;
    }
    return true;
  }

  void EndThought() {
    if (std::exchange(thinking_, false)) Remark("{}\n", dimmed_ ? "\033[0m" : "");
  }

  AnswerParser parser_;
  const bool shows_text_;
  const bool dimmed_ = TakesEscapes(STDERR_FILENO);
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
  Talk(Model& model, const Request& each, const ChatOptions& options)
      : model_(model),
        engine_(ModelAccess::EngineOf(model)),
        each_(each),
        options_(options),
        system_(options.system),
        most_bytes_(engine_.plan().context() * engine_.tokenizer().longest_token()) {
    if (terminal_) {
      messages_ = std::make_unique<TerminalReader>(most_bytes_, ChatHistoryPath());
    } else {
      messages_ = std::make_unique<PipedMessages>(most_bytes_);
    }
    BeginAnew();
  }

  TalkEnd Run() {
    if (terminal_) {
      Remark("Chat format {}. /help lists commands; Ctrl-C ends an answer, Ctrl-D the talk.\n",
             engine_.chat()->name());
    }
    if (options_.first) {
      if (terminal_) Remark("> {}\n", ShownText(*options_.first, STDERR_FILENO));
      Say(*options_.first);
    }
    while (!ended_ && !interrupted_) Take(messages_->Next());
    return {.record = Record(), .interrupted = interrupted_};
  }

 private:
  void Take(const TypedMessage& typed) {
    switch (typed.kind) {
      case TypedMessage::Kind::kEnd:
        if (terminal_) Remark("\n");
        ended_ = true;
        return;
      case TypedMessage::Kind::kInterrupted:
        interrupted_ = InterruptGuard::signal() != SIGINT;
        if (!interrupted_) Remark("(Ctrl-D or /exit ends the talk)\n");
        return;
      case TypedMessage::Kind::kTooLong:  // refused before it takes memory that no plan knows of
        return Remark(
            "a message of more than {} bytes, and the context has {} tokens (--ctx asks for more); "
            "the message is left out\n",
            most_bytes_, engine_.plan().context());
      case TypedMessage::Kind::kMessage:
        if (const auto command = ParseChatCommand(typed.text)) return Do(*command);
        if (!typed.text.empty()) Say(typed.text);
    }
  }

  void Do(const ChatCommand& command) {
    using Kind = ChatCommand::Kind;
    switch (command.kind) {
      case Kind::kHelp:
        return Remark("{}", ChatHelp());
      case Kind::kNew:
        BeginAnew();
        return Remark("a new talk{}\n", system_.empty() ? "" : ", with the same system message");
      case Kind::kExit:
        ended_ = true;
        return;
      case Kind::kSystem:
        system_ = command.argument;
        BeginAnew();
        return Remark("a new talk, {} system message\n",
                      system_.empty() ? "without a" : "with this");
      case Kind::kSave:
        return Tell(Save(command.argument), "saved");
      case Kind::kLoad:
        return Tell(Load(command.argument), "loaded");
      case Kind::kUnknown:
        return Remark("there is no command {}\n", ShownText(command.argument, STDERR_FILENO));
    }
  }

  void Tell(const Status& status, std::string_view done) const {
    if (!status.ok()) return Remark("{}\n", status.message());
    Remark("{} {}\n", Counted(chat_.messages.size(), "message"), done);
  }

  Status Save(const std::string& path) const {
    if (path.empty()) return InvalidArgument("/save: the name of a file expected");
    if (chat_.messages.empty()) return InvalidArgument("/save: nothing has been said");
    return WriteJson(TalkRecord(chat_.messages), path);
  }

  Status Load(const std::string& path) {
    if (path.empty()) return InvalidArgument("/load: the name of a file expected");
    // Names, quotes and escapes may take as much as the talk itself.
    TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, 4 * most_bytes_));
    TROUPE_ASSIGN_OR_RETURN(chat_.messages, ParseTalk(path, text));
    const auto& first = chat_.messages.front();
    system_ = first.role == "system" ? first.content : "";
    return OkStatus();
  }

  void BeginAnew() {
    chat_.messages.clear();
    if (!system_.empty()) chat_.messages.push_back({.role = "system", .content = system_});
  }

  // A message that cannot be taken is answered with the reason; the talk goes on without it.
  void Say(std::string text) {
    if (text.starts_with("//")) text.erase(0, 1);
    chat_.messages.push_back({.role = "user", .content = std::move(text)});
    if (const Status status = AnswerLast(); !status.ok()) {
      Remark("{}; the message is left out\n", status.message());
      chat_.messages.pop_back();
    }
    const int signal = InterruptGuard::signal();
    interrupted_ = signal != 0 && signal != SIGINT;
  }

  // Fills in the prompt, of as many of the last turns as leave room for an answer.
  Result<AnswerReading> Prepare(Request& request) {
    const std::size_t context = engine_.plan().context();
    const std::size_t room = std::min(each_.max_tokens, context / 4);
    std::vector<Message> kept = chat_.messages;
    std::size_t dropped = 0;
    for (;;) {
      request = each_;
      TROUPE_ASSIGN_OR_RETURN(AnswerReading reading,
                              PrepareChat({.chat = {.messages = kept}}, Today(),
                                          engine_.tokenizer(), engine_.chat(), request));
      const std::size_t length = std::get<std::vector<TokenId>>(request.prompt).size();
      const std::size_t now = length + room > context ? DropOldestTurn(kept) : 0;
      dropped += now;
      if (now > 0) continue;
      if (length >= context) {
        return Error(Code::kResourceExhausted,
                     "the message has {} tokens with what stands around it, and the context has {} "
                     "(--ctx asks for more)",
                     length, context);
      }
      if (dropped > 0) {
        Remark(
            "[the oldest {} messages do not fit into the context of {} tokens any more and are "
            "forgotten; --ctx asks for a longer one]\n",
            dropped, context);
        chat_.messages = std::move(kept);
      }
      return reading;
    }
  }

  Status AnswerLast() {
    Request request;
    TROUPE_ASSIGN_OR_RETURN(const AnswerReading reading, Prepare(request));
    const std::vector<TokenId> prompt = std::get<std::vector<TokenId>>(request.prompt);
    const InterruptGuard guard;
    AnswerShow show(reading, options_.shows_text);
    const Result<Answer> answer =
        AnswerOf(model_, std::move(request),
                 {.on_piece = [&show](const Piece& piece) { return show.Push(piece.text); }});
    show.Finish(answer.ok() ? answer->text : "");
    if (options_.shows_text) PrintNow("\n");
    TROUPE_RETURN_IF_ERROR(answer.status());  // a read that failed, say
    if (answer->finish == FinishReason::kCancelled && answer->tokens.empty()) {
      return Error(Code::kCancelled, "interrupted before an answer began");
    }
    const bool cut =
        answer->finish == FinishReason::kLength || answer->finish == FinishReason::kContextFull;
    const RunFigures figures = FiguresOf(engine_, *answer);
    if (!options_.tells_figures) {
      if (cut) Remark("[ended: {}]\n", figures.ended);
      Remark("{}", RunLossLines(figures));
    } else if (terminal_ || cut) {
      Remark("{}\n{}", RunSentence(figures), RunLossLines(figures));
    }
    if (options_.records) answers_.push_back(RunRecord(engine_, prompt, each_.sampling, *answer));
    chat_.messages.push_back(AssistantMessage(reading, *answer));
    return OkStatus();
  }

  Json Record() const {
    Json record = TalkRecord(chat_.messages);
    if (options_.records) record["answers"] = answers_;
    return record;
  }

  Model& model_;
  Engine& engine_;
  const Request& each_;
  const ChatOptions& options_;
  std::string system_;
  const std::size_t most_bytes_;
  const bool terminal_ = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  std::unique_ptr<MessageReader> messages_;
  Conversation chat_;
  Json answers_ = Json::Array();
  bool ended_ = false, interrupted_ = false;
};

}  // namespace

Result<TalkEnd> Chat(Model& model, const Request& each, const ChatOptions& options) {
  TROUPE_RETURN_IF_ERROR(ModelAccess::EngineOf(model).chat().status());
  return Talk(model, each, options).Run();
}

}  // namespace troupe
