#include "troupe/chat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>

#include "base/today.h"
#include "troupe/bounded_line.h"
#include "troupe/interrupt.h"
#include "troupe/remark.h"
#include "troupe/run_record.h"

namespace troupe {
namespace {

// The session keeps what the new prompt begins with; only the rest is fed. At least one token must
// be, for there to be logits.
std::size_t KeepCommonPrefix(Session& session, std::span<const TokenId> prompt) {
  const std::span<const std::int32_t> held = session.tokens();
  std::size_t common = 0;
  while (common < held.size() && common + 1 < prompt.size() && held[common] == prompt[common]) {
    ++common;
  }
  session.Truncate(common);
  return common;
}

}  // namespace

Status Chat(Engine& engine, GenerateOptions options, const std::string& system) {
  TROUPE_RETURN_IF_ERROR(engine.chat().status());
  const ChatPrompts& chat = *engine.chat();
  TROUPE_ASSIGN_OR_RETURN(Session session, Session::Create(engine));
  const std::vector<std::string> stops = chat.StopStrings();
  options.stop.insert(options.stop.end(), stops.begin(), stops.end());
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (terminal) {
    Remark(
        "Chat format {}. A line is a message; /new forgets the talk; Ctrl-C ends an answer, "
        "Ctrl-D the program.\n",
        chat.name());
  }
  Speculation speculation;
  speculation.drafters = engine.plan().drafters;
  std::vector<Message> messages;
  // A message that cannot be taken is answered with the reason; the talk goes on without it.
  const auto refuse = [&](const Status& status) {
    Remark("{}; the message is left out\n", status.message());
    messages.pop_back();
  };
  const auto begin_anew = [&] {
    messages.clear();
    if (!system.empty()) messages.push_back({.role = "system", .content = system});
  };
  begin_anew();
  // What cannot fit is refused before it takes memory that no plan knows of.
  const std::size_t most = engine.plan().context() * engine.tokenizer().longest_token();
  for (;;) {
    if (terminal) Remark("> ");
    const std::optional<BoundedLine> taken = TakeLine(std::cin, most);
    if (!taken) break;
    if (taken->too_long) {
      Remark(
          "a message of more than {} bytes, and the context has {} tokens (--ctx asks for more); "
          "the message is left out\n",
          most, engine.plan().context());
      continue;
    }
    const std::string& line = taken->text;
    if (line.empty()) continue;
    if (line == "/new") {
      begin_anew();
      continue;
    }
    messages.push_back({.role = "user", .content = line});
    const Result<RenderedChat> rendered = chat.Render({.messages = messages, .day = Today()});
    if (!rendered.ok()) {
      refuse(rendered.status());
      continue;
    }
    const Result<std::vector<TokenId>> encoded =
        engine.tokenizer().EncodeSegments(rendered->segments);
    if (!encoded.ok()) {
      refuse(encoded.status());
      continue;
    }
    const std::vector<TokenId>& prompt = *encoded;
    if (prompt.size() >= engine.plan().context()) {
      refuse(Error(Code::kResourceExhausted,
                   "the talk is full: {} tokens with this message, and the context has {}; /new "
                   "begins another, --ctx asks for a longer one",
                   prompt.size(), engine.plan().context()));
      continue;
    }
    const std::size_t kept = KeepCommonPrefix(session, prompt);
    const InterruptGuard guard;
    const auto show = [](std::string_view piece) {
      return std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() &&
             std::fflush(stdout) == 0;
    };
    const Result<Answer> generated =
        Generate(session, engine.tokenizer(), std::span(prompt).subspan(kept), options,
                 {.on_text = show,
                  .stop = InterruptGuard::interrupted,
                  .speculation = speculation.drafters.any() ? &speculation : nullptr});
    fmt::print("\n");
    if (!generated.ok()) {  // a read that failed, say: the next message may not need it
      std::fflush(stdout);
      refuse(generated.status());
      continue;
    }
    const Answer& result = *generated;
    std::fflush(stdout);
    if (result.finish == FinishReason::kCancelled && result.tokens.empty()) {
      refuse(Error(Code::kCancelled, "interrupted before an answer began"));
      continue;
    }
    const bool cut =
        result.finish == FinishReason::kLength || result.finish == FinishReason::kContextFull;
    if (terminal || cut) Remark("{}\n", FiguresLine(engine, result));
    messages.push_back({.role = "assistant", .content = result.text});
  }
  return OkStatus();
}

}  // namespace troupe
