#include "troupe/chat_command.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "troupe/did_you_mean.h"
#include "troupe/trimmed.h"

namespace troupe {
namespace {

using Kind = ChatCommand::Kind;

struct ChatWord {
  std::string_view word;
  Kind kind;
};

constexpr std::array kWords = {ChatWord{"/help", Kind::kHelp},    ChatWord{"/?", Kind::kHelp},
                               ChatWord{"/new", Kind::kNew},      ChatWord{"/clear", Kind::kNew},
                               ChatWord{"/reset", Kind::kNew},    ChatWord{"/exit", Kind::kExit},
                               ChatWord{"/quit", Kind::kExit},    ChatWord{"/bye", Kind::kExit},
                               ChatWord{"/save", Kind::kSave},    ChatWord{"/load", Kind::kLoad},
                               ChatWord{"/system", Kind::kSystem}};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || c == '?'; }

}  // namespace

std::optional<ChatCommand> ParseChatCommand(std::string_view line) {
  if (!line.starts_with('/') || line.find('\n') != line.npos) return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  if (word.size() < 2 || !std::ranges::all_of(word.substr(1), IsLetter)) return std::nullopt;
  const auto known = std::ranges::find(kWords, word, &ChatWord::word);
  if (known != kWords.end()) {
    return ChatCommand{.kind = known->kind, .argument = std::string(Trimmed(line.substr(end)))};
  }
  std::vector<std::string> words;
  for (const ChatWord& one : kWords) words.emplace_back(one.word);
  const std::optional<std::string> meant = DidYouMean(word, words);
  return ChatCommand{.kind = Kind::kUnknown,
                     .argument = meant ? fmt::format("{}; did you mean {}?", word, *meant)
                                       : fmt::format("{}; /help lists those there are", word)};
}

std::optional<std::string> RestOfCommand(std::string_view beginning) {
  std::vector<ChatWord> begun;
  for (const ChatWord& one : kWords) {
    if (!beginning.empty() && one.word.starts_with(beginning)) begun.push_back(one);
  }
  if (begun.empty()) return std::nullopt;
  std::string_view common = begun.front().word;
  for (const ChatWord& one : begun) {
    const auto differ = std::ranges::mismatch(common, one.word);
    common = common.substr(0, static_cast<std::size_t>(differ.in1 - common.begin()));
  }
  std::string rest(common.substr(beginning.size()));
  const Kind kind = begun.front().kind;
  const bool takes_argument = kind == Kind::kSystem || kind == Kind::kSave || kind == Kind::kLoad;
  if (begun.size() == 1 && takes_argument) rest += ' ';
  return rest;
}

std::string_view ChatHelp() {
  return "/new           forget the talk and begin another\n"
         "/system TEXT   give the model other instructions, and begin another talk\n"
         "/save FILE     save the talk (JSON)\n"
         "/load FILE     go on with a talk that was saved\n"
         "/exit          end; so does Ctrl-D\n"
         "/help          this\n"
         "A message of several lines: paste it; end lines with \\; or put \"\"\" before and "
         "after.\n"
         "A message that begins with a slash: begin it with two. Tab completes a command. Ctrl-C "
         "ends an\n"
         "answer, or takes back what was typed.\n";
}

}  // namespace troupe
