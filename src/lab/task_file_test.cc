#include "lab/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TaskItem ItemOf(const std::string& line) {
  const TaskFile file = ParseTaskFile("t.jsonl", line).value();
  EXPECT_EQ(file.items.size(), 1u);
  return file.items.front();
}

std::string ErrorOf(const std::string& text) {
  const Result<TaskFile> file = ParseTaskFile("t.jsonl", text);
  EXPECT_FALSE(file.ok()) << text;
  return file.ok() ? "" : file.status().message();
}

TEST(TaskFile, ReadsAQueryWithChoices) {
  const TaskItem item = ItemOf(
      R"({"query": "The man turned on the faucet, therefore ", "gold": 1, "choices": ["the toilet filled.", " water flowed."]})");
  EXPECT_EQ(item.line, 1u);
  EXPECT_EQ(item.gold, 1u);
  const std::string context = "The man turned on the faucet, therefore";
  EXPECT_EQ(item.options, (std::vector<TaskOption>{{context, " the toilet filled."},
                                                   {context, " water flowed."}}));
}

TEST(TaskFile, AQuestionThatEndsWithoutAnswerGetsOne) {
  const std::string rest = R"(", "choices": ["a", "b"], "gold": 0})";
  EXPECT_EQ(ItemOf(R"({"query": "Question: What?)" + rest).options[0].context,
            "Question: What?\nAnswer:");
  EXPECT_EQ(ItemOf(R"({"query": "Passage: It is. Is it?)" + rest).options[0].context,
            "Passage: It is. Is it?\nAnswer:");
  EXPECT_EQ(ItemOf(R"({"query": "Question: What?\nA. x\nAnswer: )" + rest).options[0].context,
            "Question: What?\nA. x\nAnswer:");
  EXPECT_EQ(ItemOf(R"({"query": "They decide to)" + rest).options[0].context, "They decide to");
}

TEST(TaskFile, ReadsContextsThatEndAlike) {
  const TaskItem item = ItemOf(
      R"({"context_options": ["So Sarah", "So Maria"], "continuation": "got it.", "gold": 1})");
  EXPECT_EQ(item.options,
            (std::vector<TaskOption>{{"So Sarah", " got it."}, {"So Maria", " got it."}}));
  EXPECT_EQ(item.gold, 1u);
}

TEST(TaskFile, ReadsLetteredOptionsByTheirWords) {
  const TaskItem item = ItemOf(
      R"({"question": "Whose office?", "options": "A. Sam's\nB. The producers',\nall of them\nC. Ambiguous", "answer": "C. Ambiguous"})");
  const std::string context = "Question: Whose office?\nAnswer:";
  EXPECT_EQ(item.options, (std::vector<TaskOption>{{context, " Sam's"},
                                                   {context, " The producers',\nall of them"},
                                                   {context, " Ambiguous"}}));
  EXPECT_EQ(item.gold, 2u);
}

TEST(TaskFile, ReadsAContinuationThatStandsAlone) {
  const TaskItem item = ItemOf(R"({"context": "25 - 759 =", "continuation": " -734"})");
  EXPECT_EQ(item.options, (std::vector<TaskOption>{{"25 - 759 =", " -734"}}));
}

TEST(TaskFile, CountsLinesAndLeavesOutEmptyOnes) {
  const std::string line = R"({"context": "1 + 1 =", "continuation": "2"})";
  const TaskFile file = ParseTaskFile("t.jsonl", line + "\n\n \r\n" + line + "\r\n").value();
  ASSERT_EQ(file.items.size(), 2u);
  EXPECT_EQ(file.items[1].line, 4u);
  EXPECT_THAT(ErrorOf(line + "\n\n{]"), HasSubstr("t.jsonl, line 3: not JSON"));
  EXPECT_THAT(ErrorOf("\n \n"), HasSubstr("t.jsonl: holds no line"));
}

TEST(TaskFile, WhatItDoesNotKnowIsNamedWithWhatItDoes) {
  EXPECT_THAT(ErrorOf(R"({"question": "Who?", "answer": ["me"]})"),
              AllOf(HasSubstr("t.jsonl, line 1: found the fields question, answer"),
                    HasSubstr("expected query, choices, gold; or context_options")));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("found no fields"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("the line: [1], expected an object"));
}

TEST(TaskFile, WrongValuesAreNamedWithWhatWasExpected) {
  EXPECT_THAT(ErrorOf(R"({"query": "x", "choices": ["a", "b"], "gold": 2})"),
              HasSubstr("the line.gold: 2, expected a whole number from 0 to 1"));
  EXPECT_THAT(ErrorOf(R"({"query": "x", "choices": ["a", "b"]})"), HasSubstr("no 'gold'"));
  EXPECT_THAT(ErrorOf(R"({"query": "x", "choices": ["a"], "gold": 0})"),
              HasSubstr("expected 2 to 64 texts"));
  EXPECT_THAT(ErrorOf(R"({"query": "x", "choices": ["a", " "], "gold": 0})"),
              HasSubstr(R"(the line.choices[1]: " ", expected a text to score)"));
  EXPECT_THAT(ErrorOf(R"({"query": 5, "choices": ["a", "b"], "gold": 0})"),
              HasSubstr("the line.query: 5, expected a text"));
  EXPECT_THAT(ErrorOf(R"({"question": "x", "options": "A. a\nB. b", "answer": "C. c"})"),
              HasSubstr("expected one of the options"));
  EXPECT_THAT(ErrorOf(R"({"question": "x", "options": "1. a\n2. b", "answer": "1. a"})"),
              HasSubstr("expected 'A. ' at byte 0"));
}

}  // namespace
}  // namespace troupe
