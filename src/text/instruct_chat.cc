#include "text/instruct_chat.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace troupe {
namespace {

struct InstructFormat {
  ChatFormat format;
  std::string_view turn_begins;  // the first turn
  std::string_view later_turn_begins;
  std::string_view system_begins, system_ends;
  std::string_view user_ends;
  std::string_view answer_begins, answer_ends;
  bool trims_all = false;
  bool trims_answers = false;
};

constexpr InstructFormat kInstructFormats[] = {
    {.format = ChatFormat::kLlama2,
     .turn_begins = "[INST] ",
     .later_turn_begins = "[INST] ",
     .system_begins = "",
     .system_ends = "\n",
     .user_ends = " [/INST]",
     .answer_begins = "",
     .answer_ends = "</s>"},
    {.format = ChatFormat::kLlama2System,
     .turn_begins = "[INST] ",
     .later_turn_begins = "[INST] ",
     .system_begins = "<<SYS>>\n",
     .system_ends = "\n<</SYS>>\n\n",
     .user_ends = " [/INST]",
     .answer_begins = "",
     .answer_ends = "</s>"},
    {.format = ChatFormat::kLlama2SystemBos,
     .turn_begins = "[INST] ",
     .later_turn_begins = "<s>[INST] ",
     .system_begins = "<<SYS>>\n",
     .system_ends = "\n<</SYS>>\n\n",
     .user_ends = " [/INST]",
     .answer_begins = "",
     .answer_ends = "</s>"},
    // Meta's original, with blanks around the answers.
    {.format = ChatFormat::kLlama2SystemStrip,
     .turn_begins = "[INST] ",
     .later_turn_begins = "<s>[INST] ",
     .system_begins = "<<SYS>>\n",
     .system_ends = "\n<</SYS>>\n\n",
     .user_ends = " [/INST]",
     .answer_begins = " ",
     .answer_ends = " </s>",
     .trims_all = true},
    {.format = ChatFormat::kMistralV1,
     .turn_begins = " [INST] ",
     .later_turn_begins = " [INST] ",
     .system_begins = "",
     .system_ends = "\n\n",
     .user_ends = " [/INST]",
     .answer_begins = " ",
     .answer_ends = "</s>"},
    {.format = ChatFormat::kMistralV3,
     .turn_begins = "[INST] ",
     .later_turn_begins = "[INST] ",
     .system_begins = "",
     .system_ends = "\n\n",
     .user_ends = "[/INST]",
     .answer_begins = " ",
     .answer_ends = "</s>",
     .trims_answers = true},
    {.format = ChatFormat::kMistralV3Tekken,
     .turn_begins = "[INST]",
     .later_turn_begins = "[INST]",
     .system_begins = "",
     .system_ends = "\n\n",
     .user_ends = "[/INST]",
     .answer_begins = "",
     .answer_ends = "</s>"},
};

const InstructFormat* Find(ChatFormat format) {
  const auto found = std::find_if(std::begin(kInstructFormats), std::end(kInstructFormats),
                                  [&](const auto& known) { return known.format == format; });
  return found == std::end(kInstructFormats) ? nullptr : found;
}

}  // namespace

bool IsInstructFormat(ChatFormat format) { return Find(format) != nullptr; }

void WriteInstructChat(ChatFormat format, std::span<const ChatTurn> turns, ChatWriter& writer) {
  const InstructFormat* marks = Find(format);
  TROUPE_CHECK(marks != nullptr);
  // A system message opens a turn and the next user message continues it; an answer closes it.
  bool is_first_turn = true;
  bool is_inside_turn = false;
  for (const ChatTurn& turn : turns) {
    const bool trims =
        marks->trims_all || (marks->trims_answers && turn.role == ChatRole::kAssistant);
    const std::string_view content = trims ? Trim(turn.content) : turn.content;
    if (!is_inside_turn && turn.role != ChatRole::kAssistant) {
      writer.Template(is_first_turn ? marks->turn_begins : marks->later_turn_begins);
      is_first_turn = false;
      is_inside_turn = true;
    }
    switch (turn.role) {
      case ChatRole::kSystem:
        writer.Template(marks->system_begins);
        writer.Content(content);
        writer.Template(marks->system_ends);
        break;
      case ChatRole::kUser:
        writer.Content(content);
        writer.Template(marks->user_ends);
        break;
      case ChatRole::kAssistant:
        writer.Template(marks->answer_begins);
        writer.Content(content);
        writer.Template(marks->answer_ends);
        is_inside_turn = false;
        break;
    }
  }
}

}  // namespace troupe
