#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "text/chat_writer.h"
#include "text/instruct_chat.h"

namespace troupe {
namespace {

// Most formats put every message between two marks that its role decides.
struct Marks {
  std::string_view before, after;
};
struct MarkedFormat {
  ChatFormat format;
  std::array<Marks, 3> of_role;  // by ChatRole
  std::string_view answer_begins;
  std::string_view answer_ends;  // empty: nothing in the text says so
  bool trims = false;            // contents lose the blanks around them
};

constexpr std::string_view kDeepseekEnd = "<｜end▁of▁sentence｜>";

constexpr MarkedFormat kMarkedFormats[] = {
    {.format = ChatFormat::kPlain,
     .of_role = {{{"", "\n"}, {"", "\n"}, {"", "\n"}}},
     .answer_begins = "",
     .answer_ends = ""},
    {.format = ChatFormat::kChatMl,
     .of_role = {{{"<|im_start|>system\n", "<|im_end|>\n"},
                  {"<|im_start|>user\n", "<|im_end|>\n"},
                  {"<|im_start|>assistant\n", "<|im_end|>\n"}}},
     .answer_begins = "<|im_start|>assistant\n",
     .answer_ends = "<|im_end|>"},
    {.format = ChatFormat::kMistralV7,
     .of_role = {{{"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"}, {"[INST] ", "[/INST]"}, {" ", "</s>"}}},
     .answer_begins = "",
     .answer_ends = "</s>"},
    {.format = ChatFormat::kLlama3,
     .of_role = {{{"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"},
                  {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"},
                  {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"}}},
     .answer_begins = "<|start_header_id|>assistant<|end_header_id|>\n\n",
     .answer_ends = "<|eot_id|>",
     .trims = true},
    {.format = ChatFormat::kDeepseekCoder,
     .of_role = {{{"", ""}, {"### Instruction:\n", "\n"}, {"### Response:\n", "\n<|EOT|>\n"}}},
     .answer_begins = "### Response:\n",
     .answer_ends = "<|EOT|>"},
    {.format = ChatFormat::kDeepseek,
     .of_role = {{{"", "\n\n"}, {"User: ", "\n\n"}, {"Assistant: ", kDeepseekEnd}}},
     .answer_begins = "Assistant:",
     .answer_ends = kDeepseekEnd},
    {.format = ChatFormat::kDeepseek3,
     .of_role = {{{"", "\n\n"}, {"<｜User｜>", ""}, {"<｜Assistant｜>", kDeepseekEnd}}},
     .answer_begins = "<｜Assistant｜>",
     .answer_ends = kDeepseekEnd},
    {.format = ChatFormat::kPhi3,
     .of_role = {{{"<|system|>\n", "<|end|>\n"},
                  {"<|user|>\n", "<|end|>\n"},
                  {"<|assistant|>\n", "<|end|>\n"}}},
     .answer_begins = "<|assistant|>\n",
     .answer_ends = "<|end|>"},
    {.format = ChatFormat::kTulu,
     .of_role = {{{"<|system|>\n", "\n"},
                  {"<|user|>\n", "\n"},
                  {"<|assistant|>\n", "<|endoftext|>\n"}}},
     .answer_begins = "<|assistant|>\n",
     .answer_ends = "<|endoftext|>"},
};

const MarkedFormat& FindMarked(ChatFormat format) {
  const auto found = std::find_if(std::begin(kMarkedFormats), std::end(kMarkedFormats),
                                  [&](const auto& known) { return known.format == format; });
  TROUPE_CHECK(found != std::end(kMarkedFormats));  // or it is one of instruct_chat.h's
  return *found;
}

Result<std::vector<ChatTurn>> ReadRoles(std::span<const Message> messages) {
  constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};
  std::vector<ChatTurn> turns;
  for (const Message& message : messages) {
    const auto role = std::find(kRoles.begin(), kRoles.end(), message.role);
    if (role == kRoles.end()) {
      return InvalidArgument("message {}: role '{}', expected system, user or assistant",
                             turns.size(), message.role);
    }
    turns.push_back({static_cast<ChatRole>(role - kRoles.begin()), message.content});
  }
  return turns;
}

}  // namespace

Result<std::vector<TextSegment>> RenderChat(ChatFormat format, std::span<const Message> messages,
                                            bool add_generation_prompt) {
  TROUPE_ASSIGN_OR_RETURN(const std::vector<ChatTurn> turns, ReadRoles(messages));
  ChatWriter writer;
  if (IsInstructFormat(format)) {
    WriteInstructChat(format, turns, writer);
    return std::move(writer).Take();
  }
  const MarkedFormat& marked = FindMarked(format);
  for (const ChatTurn& turn : turns) {
    const Marks& marks = marked.of_role[static_cast<std::size_t>(turn.role)];
    writer.Template(marks.before);
    writer.Content(marked.trims ? Trim(turn.content) : turn.content);
    writer.Template(marks.after);
  }
  if (add_generation_prompt) writer.Template(marked.answer_begins);
  return std::move(writer).Take();
}

std::vector<std::string> ChatStopStrings(ChatFormat format) {
  if (IsInstructFormat(format)) return {"</s>"};
  const std::string_view end = FindMarked(format).answer_ends;
  if (end.empty()) return {};
  return {std::string(end)};
}

}  // namespace troupe
