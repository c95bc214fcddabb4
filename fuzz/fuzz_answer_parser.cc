// Any bytes as an answer, in a style that the first byte chooses: it is read whole and in pieces of
// changing length, which give the same parts.
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/json.h"
#include "text/answer_parts/answer_parser.h"

namespace troupe {
namespace {

constexpr std::string_view kTemplates[] = {"<think></think><tool_call>",
                                           "<tool_call><function=x><parameter=y>",
                                           "<think></think><arg_key>",
                                           "<think></think><｜tool▁calls▁begin｜>",
                                           "<｜tool▁calls▁begin｜>```json",
                                           "[TOOL_CALLS] [ARGS]",
                                           "[TOOL_CALLS]",
                                           "<|tool_call|>",
                                           "<|channel|><|message|>",
                                           "<function=",
                                           "<think></think><|tool_calls_section_begin|>",
                                           "<think></think><minimax:tool_call>",
                                           "<|start_header_id|>ipython<|end_header_id|>"
                                           "\"parameters\""};

std::shared_ptr<const ToolSet> Tools() {
  static const auto tools = std::make_shared<const ToolSet>(
      ToolSet::Of(*Json::Parse(R"([{"type": "function", "function": {"name": "f"}}])")).value());
  return tools;
}

AnswerEvents Parse(std::uint8_t choice, std::string_view text, std::size_t piece) {
  const AnswerStyle style = RecogniseAnswerStyle(kTemplates[choice % std::size(kTemplates)]);
  AnswerParser parser(style, {.reads_calls = true, .starts_in_reasoning = choice >= 128}, Tools());
  AnswerEvents joined;
  const auto take = [&](const AnswerEvents& events) {
    for (const AnswerEvent& event : events) AddEvent(event.kind, event.text, joined);
  };
  for (std::size_t at = 0; at < text.size(); at += piece) take(parser.Push(text.substr(at, piece)));
  take(parser.Finish());
  return joined;
}

}  // namespace
}  // namespace troupe

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 2), size - 2);
  const auto whole = troupe::Parse(data[0], text, text.size() + 1);
  TROUPE_CHECK(troupe::Parse(data[0], text, 1) == whole);
  TROUPE_CHECK(troupe::Parse(data[0], text, 1 + data[1] % 16) == whole);
  return 0;
}
