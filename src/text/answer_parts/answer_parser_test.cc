#include "text/answer_parts/answer_parser.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using Kind = AnswerEvent::Kind;

const char* const kHermes = "<think></think><tool_call>";
const char* const kCoder = "<tool_call><function=x><parameter=y>";
const char* const kGlm = "<think></think><tool_call><arg_key>";
const char* const kDeepseek31 = "<think></think><｜tool▁calls▁begin｜>";
const char* const kDeepseekR1 = "<think></think><｜tool▁calls▁begin｜>```json";
const char* const kMistral = "[TOOL_CALLS] [ARGS]";
const char* const kNemo = "[TOOL_CALLS]";
const char* const kGranite = "<|tool_call|>";
const char* const kHarmony = "<|channel|><|message|>";
const char* const kFunctionary = "<function=";
const char* const kKimi = "<think></think><|tool_calls_section_begin|>";
const char* const kMinimax = "<think></think><minimax:tool_call>";
const char* const kLlama =
    "<think></think><|start_header_id|>ipython<|end_header_id|>\"parameters\"";
const char* const kStyles[] = {kHermes,  kCoder,   kGlm,     kDeepseek31, kDeepseekR1,
                               kMistral, kNemo,    kGranite, kHarmony,    kFunctionary,
                               kKimi,    kMinimax, kLlama};

std::shared_ptr<const ToolSet> Tools() {
  return std::make_shared<ToolSet>(
      ToolSet::Of(*Json::Parse(R"([{"type": "function", "function": {"name": "find", "parameters":
        {"type": "object", "properties": {"text": {"type": "string"}, "most": {"type": "integer"}}}}}])"))
          .value());
}

constexpr PartOptions kAll = {.reads_reasoning = true, .reads_calls = true};

// As one line: content as it is, the rest in brackets.
std::string Told(const AnswerEvents& events) {
  AnswerEvents joined;
  for (const AnswerEvent& event : events) AddEvent(event.kind, event.text, joined);
  std::string out;
  for (const AnswerEvent& event : joined) {
    if (event.kind == Kind::kContent) out += event.text;
    if (event.kind == Kind::kReasoning) out += "[thinks " + event.text + "]";
    if (event.kind == Kind::kCall) out += "[calls " + event.text + "]";
    if (event.kind == Kind::kArguments) out += "[with " + event.text + "]";
  }
  return out;
}

std::string Parse(const char* style, std::string_view text, const PartOptions& options = kAll) {
  AnswerParser parser(RecogniseAnswerStyle(style), options, Tools());
  AnswerEvents events = parser.Push(text);
  for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
  return Told(events);
}

TEST(AnswerParser, ReadsTheCallsOfEachSyntax) {
  const std::string expected = R"([calls find][with {"text": "a b", "most": 3}])";
  const std::string call = R"({"name": "find", "arguments": {"text": "a b", "most": 3}})";
  EXPECT_EQ(Parse(kHermes, "<tool_call>\n" + call + "\n</tool_call>"), expected);
  EXPECT_EQ(Parse(kNemo, "[TOOL_CALLS][" + call + "]"), expected);
  EXPECT_EQ(Parse(kGranite, "<|tool_call|>[" + call + "]"), expected);
  const std::string arguments = R"({"text": "a b", "most": 3})";
  EXPECT_EQ(Parse(kMistral, "[TOOL_CALLS]find[ARGS]" + arguments), expected);
  EXPECT_EQ(Parse(kMistral, "[TOOL_CALLS]find[CALL_ID]abcdefghi[ARGS]" + arguments), expected);
  EXPECT_EQ(Parse(kFunctionary, "<function=find>" + arguments + "</function>"), expected);
  EXPECT_EQ(Parse(kDeepseek31, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>" +
                                   arguments + "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            expected);
  EXPECT_EQ(
      Parse(kDeepseekR1,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>find\n```json\n" +
                arguments + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
      expected);
  EXPECT_EQ(Parse(kHarmony, "<|channel|>commentary to=functions.find <|constrain|>json<|message|>" +
                                arguments + "<|call|>"),
            expected);
  EXPECT_EQ(Parse(kHarmony, " to=functions.find<|channel|>commentary json<|message|>" + arguments),
            expected);
}

TEST(AnswerParser, ReadsArgumentsBetweenTagsByTheirTypes) {
  const std::string expected = R"([calls find][with {"text":"12","most":3}])";
  EXPECT_EQ(Parse(kCoder,
                  "<tool_call>\n<function=find>\n<parameter=text>\n12\n</parameter>\n"
                  "<parameter=most>\n3\n</parameter>\n</function>\n</tool_call>"),
            expected);
  EXPECT_EQ(Parse(kGlm,
                  "<tool_call>find\n<arg_key>text</arg_key>\n<arg_value>12</arg_value>\n"
                  "<arg_key>most</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"),
            expected);
  EXPECT_EQ(Parse(kCoder, "<function=find>\n</function>"), "[calls find][with {}]");
  EXPECT_EQ(Parse(kGlm, "<tool_call>find</tool_call>"), "[calls find][with {}]");
  EXPECT_EQ(Parse(kCoder, "<function=find><parameter=text>a\nb"),
            R"([calls find][with {"text":"a\nb])");
}

TEST(AnswerParser, ReadsCallsThatHaveNumbers) {
  const auto call = [](std::string name, std::string arguments) {
    return "<|tool_call_begin|>" + name + "<|tool_call_argument_begin|>" + arguments +
           "<|tool_call_end|>";
  };
  const std::string begin = "<|tool_calls_section_begin|>", end = "<|tool_calls_section_end|>";
  EXPECT_EQ(Parse(kKimi, "<think>Hm.</think>I look." + begin +
                             call("functions.find:0", R"({"text": "a"})") +
                             call("functions.find:11 ", "{}") + end),
            R"([thinks Hm.]I look.[calls find][with {"text": "a"}][calls find][with {}])");
  EXPECT_EQ(Parse(kKimi, "<think>Hm." + begin + call("find:0", "{}") + end + " Done."),
            "[thinks Hm.][calls find][with {}]Done.");
  EXPECT_EQ(Parse(kKimi, begin + call("functions.a:b", "{}") + end), "[calls a:b][with {}]");
  EXPECT_EQ(Parse(kKimi, begin + "<|tool_call_begin|>functions.find"),
            begin + "<|tool_call_begin|>functions.find");
  EXPECT_EQ(Parse(kKimi, begin + call("functions.find:0", R"({"text": "a)")),
            "[calls find][with {\"text\": \"a<|tool_call_end|>]");
}

TEST(AnswerParser, ReadsCallsWhoseTagsHaveAttributes) {
  const std::string begin = "<minimax:tool_call>\n", end = "</minimax:tool_call>";
  const std::string find =
      "<invoke name=\"find\">\n<parameter name=\"text\">12\n</parameter>\n"
      "<parameter name=\"most\">3</parameter>\n</invoke>\n";
  EXPECT_EQ(Parse(kMinimax, "Hm.\n</think>\n\nI look.\n" + begin + find + end,
                  {.reads_reasoning = true, .reads_calls = true, .starts_in_reasoning = true}),
            R"([thinks Hm.]I look.[calls find][with {"text":"12\n","most":3}])");
  EXPECT_EQ(Parse(kMinimax, begin + find + "<invoke name=\"stop\">\n</invoke>\n" + end),
            R"([calls find][with {"text":"12\n","most":3}][calls stop][with {}])");
  EXPECT_EQ(Parse(kMinimax, "<invoke name=find>"), "<invoke name=find>");
  EXPECT_EQ(Parse(kMinimax, "<invoke name=\"find\"x>"), "<invoke name=\"find\"x>");
}

TEST(AnswerParser, AnObjectThatIsTheWholeAnswerAndNamesAToolIsACallWithoutMarks) {
  const std::string expected = R"([calls find][with {"text": "a}", "most": 1e2}])";
  const std::string call = R"({"name": "find", "parameters": {"text": "a}", "most": 1e2}})";
  EXPECT_EQ(Parse(kLlama, call), expected);
  EXPECT_EQ(Parse(kLlama, "\n<|python_tag|> " + call + "\n"), expected);
  EXPECT_EQ(Parse(kLlama, "<think>Hm.</think>\n\n" + call), "[thinks Hm.]" + expected);
  EXPECT_EQ(Parse(kLlama, R"({"type": "function", "name": "find", "arguments": {"most": 1}})"),
            R"([calls find][with {"most":1}])");
  for (const std::string& text :
       {call + " It is done.", "I call " + call, call + call, call.substr(0, call.size() - 1),
        std::string(R"({"name": "Ann", "parameters": {}})"), std::string(R"({"name": "find"})"),
        std::string(R"({"name": "find", "parameters": 5})"), std::string("<|python_tag|>find()"),
        std::string(R"({"age": 5})"), std::string("{"), std::string("<|python"),
        std::string(R"({"type": "x", "parameters": {}})"), std::string(R"({"name": "find, )")}) {
    EXPECT_EQ(Parse(kLlama, text), text);
  }
  EXPECT_EQ(Parse(kLlama, call, {.reads_calls = false}), call);
}

TEST(AnswerParser, AnObjectThatCannotBecomeACallIsToldAsItComes) {
  AnswerParser parser(RecogniseAnswerStyle(kLlama), kAll, Tools());
  EXPECT_EQ(Told(parser.Push(R"({"na)")), "");
  EXPECT_EQ(Told(parser.Push(R"(me": "fi)")), "");
  EXPECT_EQ(Told(parser.Push(R"(ve", "a": )")), R"({"name": "five", "a": )");
  EXPECT_EQ(Told(parser.Push("1}")), "1}");
  // A name that does not end is not waited for either.
  AnswerParser patient(RecogniseAnswerStyle(kLlama), kAll, Tools());
  EXPECT_EQ(Told(patient.Push("{\"name\": \"" + std::string(500, 'x'))), "");
  EXPECT_GT(Told(patient.Push(std::string(600, 'x'))).size(), 1000u);
}

TEST(AnswerParser, ReadsContentAndReasoningAroundCalls) {
  EXPECT_EQ(Parse(kHermes,
                  "<think>\nHm.\n</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"find\", "
                  "\"arguments\": {}}\n</tool_call>\n<tool_call>{\"name\": \"find\", "
                  "\"arguments\": {\"most\": 1}}</tool_call>"),
            "[thinks Hm.]Let me see.[calls find][with {}][calls find][with {\"most\": 1}]");
  EXPECT_EQ(Parse(kHarmony,
                  "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary"
                  "<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>It is 5."),
            "[thinks Hm.]I look.It is 5.");
  EXPECT_EQ(Parse(kHermes, "Hm.\n</think>\nYes.",
                  {.reads_reasoning = true, .reads_calls = true, .starts_in_reasoning = true}),
            "[thinks Hm.]Yes.");
  EXPECT_EQ(Parse(kHermes, "<think>Hm", kAll), "[thinks Hm]");
}

TEST(AnswerParser, TakesArgumentsInAnyOrderAndAsText) {
  EXPECT_EQ(Parse(kHermes, R"(<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>)"),
            R"([calls f][with {"a":1}])");
  EXPECT_EQ(Parse(kHermes, R"(<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>)"),
            R"([calls f][with {"a": 1}])");
  EXPECT_EQ(Parse(kHermes, R"(<tool_call>{"name": "f"}</tool_call> done)"),
            "[calls f][with {}]done");
  EXPECT_EQ(Parse(kNemo, R"([TOOL_CALLS][{"name": "f", "arguments": {}, "id": "a}b"},
                             {"name": "g", "arguments": {"x": "}"}}])"),
            R"([calls f][with {}][calls g][with {"x": "}"}])");
}

TEST(AnswerParser, WhatIsNoCallIsContent) {
  for (const char* text :
       {"<tool_call>", "<tool_call> me", "a <tool_call>{\"x\": 1}</tool_call> b", "<tool_cal",
        "<tool_call>{\"name\": 5}</tool_call>", "{\"name\": \"f\"}", "<tool_call><tool_call>",
        " blanks \n", "a < b </tool_call>", "<tool_call>{\"name\": \"f\", \"arg"}) {
    EXPECT_EQ(Parse(kHermes, text), text);
  }
  EXPECT_EQ(Parse(kDeepseek31, "<｜tool▁calls▁begin｜> none"), "<｜tool▁calls▁begin｜> none");
  EXPECT_EQ(Parse(kHarmony, "<|start|>assistant"), "<|start|>assistant");
  EXPECT_EQ(Parse(kHarmony, "No header at all."), "No header at all.");
  EXPECT_EQ(Parse(kHermes, "See <think>: it is a tag."), "See <think>: it is a tag.");
}

TEST(AnswerParser, ReadsOnlyWhatItIsAskedFor) {
  const std::string text = R"(<think>a</think><tool_call>{"name": "f"}</tool_call>)";
  EXPECT_EQ(Parse(kHermes, text, {.reads_reasoning = false, .reads_calls = false}), text);
  EXPECT_EQ(Parse(kHermes, text, {.reads_reasoning = true, .reads_calls = false}),
            R"([thinks a]<tool_call>{"name": "f"}</tool_call>)");
}

TEST(AnswerParser, ArgumentsComeBeforeTheyAreComplete) {
  AnswerParser parser(RecogniseAnswerStyle(kHermes), kAll, Tools());
  EXPECT_EQ(Told(parser.Push(R"(<tool_call>{"name": "find", "arguments": {"text": "a lo)")),
            R"([calls find][with {"text": "a lo])");
  EXPECT_EQ(Told(parser.Push("ng")), "[with ng]");
  EXPECT_EQ(Told(parser.Push(R"( story"}})")), R"([with  story"}])");
}

// Texts of marks, pieces of calls and noise, for each style.
std::string RandomText(Rng& rng) {
  static const char* const kPieces[] = {"<think>",
                                        "</think>",
                                        "<tool_call>",
                                        "</tool_call>",
                                        "{\"name\": \"find\", \"arguments\": ",
                                        "{\"text\": \"a\"}",
                                        "}",
                                        "{",
                                        "[",
                                        "]",
                                        ",",
                                        "<function=find>",
                                        "</function>",
                                        "<parameter=text>",
                                        "</parameter>",
                                        "<arg_key>",
                                        "</arg_key>",
                                        "<arg_value>",
                                        "</arg_value>",
                                        "<｜tool▁calls▁begin｜>",
                                        "<｜tool▁call▁begin｜>",
                                        "find",
                                        "<｜tool▁sep｜>",
                                        "<｜tool▁call▁end｜>",
                                        "<｜tool▁calls▁end｜>",
                                        "function<｜tool▁sep｜>find\n```json\n",
                                        "\n```",
                                        "[TOOL_CALLS]",
                                        "[ARGS]",
                                        "<|tool_call|>",
                                        "<|channel|>",
                                        "analysis",
                                        "commentary",
                                        "final",
                                        " to=functions.find",
                                        "<|message|>",
                                        "<|end|>",
                                        "<|start|>assistant",
                                        "<|call|>",
                                        "<|tool_calls_section_begin|>",
                                        "<|tool_call_begin|>functions.find:0",
                                        "<|tool_call_argument_begin|>",
                                        "<|tool_call_end|>",
                                        "<|tool_calls_section_end|>",
                                        "<minimax:tool_call>",
                                        "<invoke name=\"find\">",
                                        "<parameter name=\"text\">",
                                        "</invoke>",
                                        "</minimax:tool_call>",
                                        "<|python_tag|>",
                                        "{\"name\": \"find\", \"parameters\": {}}",
                                        " ",
                                        "\n",
                                        "text",
                                        "é",
                                        "\"",
                                        "\\",
                                        "<"};
  std::string text;
  for (std::uint64_t n = rng.Below(14); n > 0; --n) text += kPieces[rng.Below(std::size(kPieces))];
  return text;
}

TEST(AnswerParser, EveryCutGivesTheSameParts) {
  Rng rng(TestSeed());
  for (int round = 0; round < 4000; ++round) {
    const char* const style = kStyles[rng.Below(std::size(kStyles))];
    const std::string text = RandomText(rng);
    const PartOptions options = {.reads_reasoning = rng.Below(4) > 0,
                                 .reads_calls = rng.Below(4) > 0,
                                 .starts_in_reasoning = rng.Below(4) == 0};
    const std::string whole = Parse(style, text, options);
    AnswerParser parser(RecogniseAnswerStyle(style), options, Tools());
    AnswerEvents events;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t length = 1 + rng.Below(rng.Below(2) == 0 ? 1 : 8);
      for (AnswerEvent& event : parser.Push(std::string_view(text).substr(at, length))) {
        events.push_back(std::move(event));
      }
      at += length;
    }
    for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
    ASSERT_EQ(Told(events), whole) << style << "\n" << text;
  }
}

// But what stands inside a call where an API has no field for it.
TEST(AnswerParser, NoTextIsLost) {
  Rng rng(TestSeed());
  int kept = 0;
  for (int round = 0; round < 4000; ++round) {
    const char* const style = kStyles[rng.Below(std::size(kStyles))];
    std::string text = RandomText(rng);
    text.insert(rng.Below(text.size() + 1), "7777");
    const std::string told = Parse(style, text);
    if (style == kHarmony || told.find("[calls") != told.npos) continue;
    ASSERT_NE(told.find("7777"), told.npos) << style << "\n" << text;
    ++kept;
  }
  EXPECT_GT(kept, 1000);
}

}  // namespace
}  // namespace troupe
