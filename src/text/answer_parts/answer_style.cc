#include "text/answer_parts/answer_style.h"

namespace troupe {
namespace {

CallMarks DeepseekMarks(bool has_types) {
  CallMarks marks{.syntax = CallSyntax::kNamed,
                  .section_open = "<｜tool▁calls▁begin｜>",
                  .section_close = "<｜tool▁calls▁end｜>",
                  .open = "<｜tool▁call▁begin｜>",
                  .name_end = "<｜tool▁sep｜>",
                  .close = "<｜tool▁call▁end｜>"};
  if (!has_types) return marks;
  marks.open += "function<｜tool▁sep｜>";
  marks.name_end = "\n```json\n";
  marks.close = "\n```<｜tool▁call▁end｜>";
  return marks;
}

CallMarks FunctionTags(std::string open, std::string close) {
  return {.syntax = CallSyntax::kTagged,
          .section_open = std::move(open),
          .section_close = std::move(close),
          .one_in_section = true,
          .open = "<function=",
          .name_end = ">",
          .close = "</function>",
          .key_open = "<parameter=",
          .key_end = ">",
          .value_end = "</parameter>"};
}

CallMarks KimiMarks() {
  return {.syntax = CallSyntax::kNamed,
          .section_open = "<|tool_calls_section_begin|>",
          .section_close = "<|tool_calls_section_end|>",
          .open = "<|tool_call_begin|>",
          .name_end = "<|tool_call_argument_begin|>",
          .close = "<|tool_call_end|>",
          .name_prefix = "functions.",
          .numbers_calls = true};
}

CallMarks MinimaxMarks() {
  return {.syntax = CallSyntax::kTagged,
          .section_open = "<minimax:tool_call>",
          .section_close = "</minimax:tool_call>",
          .open = "<invoke name=\"",
          .name_end = "\">",
          .close = "</invoke>",
          .key_open = "<parameter name=\"",
          .key_end = "\">",
          .value_end = "</parameter>",
          .exact_values = true};
}

CallMarks FindCallMarks(std::string_view text) {
  const auto has = [text](std::string_view marker) { return text.find(marker) != text.npos; };
  if (has("<|channel|>") && has("<|message|>")) return {.syntax = CallSyntax::kHarmony};
  if (has("<｜tool▁calls▁begin｜>")) return DeepseekMarks(has("```json"));
  if (has("<|tool_calls_section_begin|>")) return KimiMarks();
  if (has("<minimax:tool_call>")) return MinimaxMarks();
  if (has("<arg_key>")) {
    return {.syntax = CallSyntax::kTagged,
            .open = "<tool_call>",
            .close = "</tool_call>",
            .key_open = "<arg_key>",
            .key_end = "</arg_key>",
            .value_open = "<arg_value>",
            .value_end = "</arg_value>"};
  }
  if (has("<seed:tool_call>")) return FunctionTags("<seed:tool_call>", "</seed:tool_call>");
  if (has("<function=") && has("<parameter=")) return FunctionTags("<tool_call>", "</tool_call>");
  if (has("<tool_calls>[")) {
    return {.syntax = CallSyntax::kJson,
            .is_list = true,
            .open = "<tool_calls>",
            .close = "</tool_calls>"};
  }
  if (has("<|tool_call|>")) {
    return {.syntax = CallSyntax::kJson, .is_list = true, .open = "<|tool_call|>"};
  }
  if (has("<tool_call>")) return GeneralCallMarks();
  if (has("[TOOL_CALLS]")) {
    if (has("[ARGS]")) {
      return {.syntax = CallSyntax::kNamed, .open = "[TOOL_CALLS]", .name_end = "[ARGS]"};
    }
    return {.syntax = CallSyntax::kJson, .is_list = true, .open = "[TOOL_CALLS]"};
  }
  if (has("<function=")) {
    return {.syntax = CallSyntax::kNamed,
            .open = "<function=",
            .name_end = ">",
            .close = "</function>"};
  }
  // Llama's: the results of calls are messages of "ipython".
  if (has("<|start_header_id|>ipython<|end_header_id|>") && has("\"parameters\"")) {
    return {.syntax = CallSyntax::kBare, .open = "<|python_tag|>"};
  }
  return {};
}

}  // namespace

std::vector<std::string> AnswerStyle::Marks() const {
  if (calls.syntax == CallSyntax::kHarmony) {
    return {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>"};
  }
  std::vector<std::string> marks;
  for (const std::string* mark :
       {&reasoning_open, &reasoning_close, &calls.section_open, &calls.section_close, &calls.open,
        &calls.name_end, &calls.close, &calls.key_open, &calls.key_end, &calls.value_open,
        &calls.value_end}) {
    if (!mark->empty()) marks.push_back(*mark);
  }
  if (calls.name_end == "[ARGS]") marks.emplace_back("[CALL_ID]");
  if (calls.section_open.starts_with("<｜")) {
    for (const char* token : {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"}) {
      marks.emplace_back(token);
    }
  }
  return marks;
}

AnswerStyle RecogniseAnswerStyle(std::string_view chat_template) {
  const auto has = [&](std::string_view mark) {
    return chat_template.find(mark) != chat_template.npos;
  };
  AnswerStyle style{.calls = FindCallMarks(chat_template)};
  if (style.calls.syntax == CallSyntax::kHarmony) return style;
  for (const auto& [open, close] :
       {std::pair("<think>", "</think>"), std::pair("<seed:think>", "</seed:think>"),
        std::pair("[THINK]", "[/THINK]")}) {
    if (!has(open) && !has(close)) continue;
    style.reasoning_open = open;
    style.reasoning_close = close;
    break;
  }
  return style;
}

CallMarks GeneralCallMarks() {
  return {.syntax = CallSyntax::kJson, .open = "<tool_call>", .close = "</tool_call>"};
}

}  // namespace troupe
