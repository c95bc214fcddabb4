#include "text/answer_parts/reasoning_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"
#include "text/answer_parts/answer_parser.h"

namespace troupe {
namespace {

using testing::ElementsAre;

constexpr const char* kThinkMarks = "<think></think><tool_call>";
constexpr const char* kChannels = "<|channel|><|message|>";

Reasoning ReasoningIn(const char* chat_template, const PartOptions& options = {}) {
  return ReasoningOf(RecogniseAnswerStyle(chat_template), options);
}

ReasoningMeter MeterOf(Reasoning reasoning, const std::vector<std::string>& tokens) {
  ReasoningMeter meter(std::move(reasoning));
  for (const std::string& token : tokens) meter.Push(token);
  return meter;
}

std::size_t Count(Reasoning reasoning, const std::vector<std::string>& tokens) {
  return MeterOf(std::move(reasoning), tokens).tokens();
}

TEST(ReasoningMeter, CountsTheTokensBetweenTheMarks) {
  const Reasoning thinks = ReasoningIn(kThinkMarks);
  EXPECT_EQ(Count(thinks, {"<think>", "a", " b", "c", "</think>", "d", "e"}), 3u);
  EXPECT_EQ(Count(thinks, {"\n", "<thi", "nk>", "a", "</", "think", ">", "d"}), 1u);
  EXPECT_EQ(Count(thinks, {"<think>a", "b</think>c", "d"}), 2u);  // tokens that hold both
  EXPECT_EQ(Count(thinks, {"a", "<think>", "b"}), 0u);            // it comes first or not at all
  EXPECT_EQ(Count(thinks, {"<think>", "a", "</think>", "<think>", "b"}), 1u);
  EXPECT_EQ(Count(thinks, {"<think>", "a", "</", "b"}), 3u);  // no mark after all
  EXPECT_EQ(Count(thinks, {"<think>", "", "é"}), 2u);         // a character of two tokens
}

TEST(ReasoningMeter, ThePromptMayHaveOpenedIt) {
  const Reasoning begun = ReasoningIn(kThinkMarks, {.starts_in_reasoning = true});
  EXPECT_EQ(Count(begun, {"a", "b", "</think>", "c"}), 2u);
  EXPECT_EQ(Count(begun, {"</think>", "c"}), 0u);
}

TEST(ReasoningMeter, ACallEndsItWhereCallsAreRead) {
  const std::vector<std::string> tokens = {"<think>", "a", "<tool_call>", "{", "}"};
  EXPECT_EQ(Count(ReasoningIn(kThinkMarks, {.reads_calls = true}), tokens), 1u);
  EXPECT_EQ(Count(ReasoningIn(kThinkMarks), tokens), 4u);
  EXPECT_THAT(ReasoningIn("<think><|tool_calls_section_begin|>", {.reads_calls = true}).closes,
              ElementsAre("</think>", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"));
}

TEST(ReasoningMeter, ChannelsMayComeAgain) {
  const std::vector<std::string> tokens = {"<|channel|>", "analysis",    "<|message|>",
                                           "a",           "b",           "<|end|>",
                                           "<|start|>",   "assistant",   "<|channel|>",
                                           "comment",     "ary",         "<|message|>",
                                           "c",           "<|end|>",     "<|start|>",
                                           "assistant",   "<|channel|>", "analysis",
                                           "<|message|>", "d",           "<|end|>",
                                           "<|start|>",   "assistant",   "<|channel|>",
                                           "final",       "<|message|>", "e"};
  EXPECT_EQ(Count(ReasoningIn(kChannels), tokens), 3u);
}

TEST(ReasoningMeter, SaysWhenThereHaveBeenEnough) {
  Reasoning two = ReasoningIn(kThinkMarks);
  two.most_tokens = 2;
  EXPECT_FALSE(MeterOf(two, {"<think>", "a"}).MustEnd());
  EXPECT_TRUE(MeterOf(two, {"<think>", "a", "b"}).MustEnd());
  EXPECT_FALSE(MeterOf(two, {"<think>", "a", "b", "</think>"}).MustEnd());
  EXPECT_FALSE(MeterOf(two, {"a", "b", "c"}).MustEnd());
  // What has begun is let go on: an end in the middle of it would be none.
  EXPECT_FALSE(MeterOf(two, {"<think>", "a", "</"}).MustEnd());
  EXPECT_TRUE(MeterOf(two, {"<think>", "a", "</", "b"}).MustEnd());
  std::vector<std::string> begins = {"<think>", "a", "b"};
  begins.resize(3 + 8, "<");
  EXPECT_TRUE(MeterOf(two, begins).MustEnd());
  begins.pop_back();
  EXPECT_FALSE(MeterOf(two, begins).MustEnd());
  ReasoningMeter meter = MeterOf(two, {"<think>", "a"});
  meter.Push("", /*in_character=*/true);
  EXPECT_FALSE(meter.MustEnd());
  meter.Push("é");
  EXPECT_TRUE(meter.MustEnd());
  two.most_tokens = 0;
  two.begun = true;
  EXPECT_TRUE(MeterOf(two, {}).MustEnd());
}

TEST(ReasoningMeter, WritesAnEndAfterWhichTheAnswerCanFollow) {
  EXPECT_EQ(ReasoningIn(kThinkMarks).end, "</think>");
  EXPECT_EQ(ReasoningIn(kChannels).end, "<|end|><|start|>assistant<|channel|>final<|message|>");
  EXPECT_EQ(ReasoningIn(kChannels, {.reads_calls = true}).end,
            "<|end|><|start|>assistant<|channel|>");
}

// With tokens of one byte the count is the length of what a parser tells, but for blanks around.
TEST(ReasoningMeter, CountsWhatTheParserTellsAsReasoning) {
  Rng rng(TestSeed());
  int compared = 0;
  for (int round = 0; round < 3000; ++round) {
    const char* const style = rng.Below(4) == 0 ? kChannels : kThinkMarks;
    const PartOptions options = {.starts_in_reasoning = style == kThinkMarks && rng.Below(2) == 0};
    std::string text;
    for (std::uint64_t n = rng.Below(8); n > 0; --n) {
      text += std::array{"<think>",
                         "</think>",
                         "a",
                         "bc",
                         "<",
                         "</thin",
                         "<|end|>",
                         "<|channel|>analysis<|message|>",
                         "<|channel|>final<|message|>",
                         "<|start|>assistant"}[rng.Below(10)];
    }
    std::vector<std::string> bytes;
    for (const char byte : text) bytes.emplace_back(1, byte);
    AnswerParser parser(RecogniseAnswerStyle(style), options, std::make_shared<ToolSet>());
    AnswerEvents events = parser.Push(text);
    for (AnswerEvent& event : parser.Finish()) events.push_back(std::move(event));
    std::size_t told = 0;
    for (const AnswerEvent& event : events) {
      if (event.kind == AnswerEvent::Kind::kReasoning) told += event.text.size();
    }
    // A header in the middle of a message is one to the parser and may be none to the meter.
    const std::size_t counted = Count(ReasoningIn(style, options), bytes);
    if (style == kChannels && text.find("<|channel|>", 1) != text.npos) continue;
    ASSERT_EQ(counted, told) << text;
    compared += told > 0 ? 1 : 0;
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace troupe
