#include "lab/task_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/evaluation.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kScoredModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

ItemScore ScoredItem(std::vector<OptionScore> options) { return {.options = std::move(options)}; }

TEST(Judge, LongAnswersLoseBySumAndNotByByte) {
  ItemScore item = ScoredItem({{.log_likelihood = -4, .tokens = 2, .bytes = 8},     // -0.5 a byte
                               {.log_likelihood = -6, .tokens = 5, .bytes = 24}});  // -0.25
  Judge(1, item);
  EXPECT_EQ(item.by_sum, 0u);
  EXPECT_EQ(item.by_byte, 1u);
  EXPECT_FALSE(item.right);
  EXPECT_TRUE(item.right_by_byte);
}

TEST(Judge, OneOptionIsRightIfEachTokenIsTheLikeliest) {
  ItemScore item = ScoredItem({{.log_likelihood = -9, .tokens = 3, .bytes = 8, .likeliest = true}});
  Judge(0, item);
  EXPECT_TRUE(item.right && item.right_by_byte);
  item.options[0].likeliest = false;
  Judge(0, item);
  EXPECT_FALSE(item.right || item.right_by_byte);
}

TEST(AccuracyDifference, CountsWhatOnlyOneOfThemGotRight) {
  TaskScore a, b;
  for (int i = 0; i < 100; ++i) {
    a.items.push_back({.right = i < 50});
    b.items.push_back({.right = i >= 10 && i < 54, .right_by_byte = i < 3});
  }
  EXPECT_EQ(AccuracyDifference(a, b, false), PairedShareDifference(10, 4, 100));
  EXPECT_EQ(AccuracyDifference(a, b, true), PairedShareDifference(0, 3, 100));
}

class TasksOfTheTinyModel : public testing::Test {
 protected:
  void SetUp() override { Open(256); }
  void Open(std::uint32_t context) {
    session_.reset();
    engine_ = Engine::Open(kScoredModel, {.threads = 1, .context = context}).value();
    session_.emplace(Session::Create(*engine_).value());
  }
  Result<TaskScore> Score(const std::string& lines, TaskOptions options = {.begin = 1}) {
    const TaskFile file = ParseTaskFile("t.jsonl", lines).value();
    return ScoreTasks(*session_, engine_->tokenizer(), file, options);
  }
  std::vector<TokenId> Tokens(const std::string& text) const {
    std::vector<TokenId> ids = engine_->tokenizer().Encode(text, {.add_special = false}).value();
    ids.insert(ids.begin(), 1);
    return ids;
  }

  std::unique_ptr<Engine> engine_;
  std::optional<Session> session_;
};

constexpr const char* kChoice =
    R"({"query": "The kernel is the part of the", "choices": ["system that talks.", "banana"], "gold": 0})";

TEST_F(TasksOfTheTinyModel, AnOptionsScoreIsThatOfItsTokensAfterTheContext) {
  const TaskScore score = Score(kChoice).value();
  ASSERT_EQ(score.items.size(), 1u);
  const OptionScore& option = score.items[0].options[0];
  const std::vector<TokenId> context = Tokens("The kernel is the part of the");
  const std::vector<TokenId> whole = Tokens("The kernel is the part of the system that talks.");
  ASSERT_TRUE(std::equal(context.begin(), context.end(), whole.begin()));
  double expected = 0;
  session_->Truncate(0);
  for (std::size_t i = 0; i + 1 < whole.size(); ++i) {
    ASSERT_TRUE(session_->Feed(std::span(whole).subspan(i, 1)).ok());
    if (i + 1 >= context.size()) {
      expected += LogProbability(session_->logits(), static_cast<std::size_t>(whole[i + 1]));
    }
  }
  EXPECT_EQ(option.log_likelihood, expected);
  EXPECT_EQ(option.tokens, whole.size() - context.size());
  EXPECT_EQ(option.bytes, std::string(" system that talks.").size());
}

TEST_F(TasksOfTheTinyModel, WhatOptionsBeginWithIsFedOnce) {
  const TaskScore score = Score(kChoice).value();
  const std::size_t context = Tokens("The kernel is the part of the").size();
  std::size_t answers = 0;
  for (const OptionScore& option : score.items[0].options) answers += option.tokens;
  EXPECT_EQ(score.tokens_scored, answers);
  // The last token of an answer needs no feeding, the one before the answer is fed for each.
  EXPECT_EQ(score.tokens_fed, context - 1 + answers);
}

TEST_F(TasksOfTheTinyModel, HowManyTokensGoTogetherChangesNoScore) {
  const TaskScore whole = Score(kChoice).value();
  const TaskScore single = Score(kChoice, {.together = 1, .begin = 1}).value();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(whole.items[0].options[i].log_likelihood, single.items[0].options[i].log_likelihood);
  }
}

TEST_F(TasksOfTheTinyModel, AContinuationIsRightIfTheModelWouldSayIt) {
  EXPECT_EQ(Score(R"({"context": "You can", "continuation": "be used"})").value().right, 1u);
  EXPECT_EQ(Score(R"({"context": "You can", "continuation": "be green"})").value().right, 0u);
}

TEST_F(TasksOfTheTinyModel, ContextsOfASchemaAreScoredEachForItself) {
  const TaskScore score = Score(R"({"context_options": ["You can", "The system of the kernel"], )"
                                R"("continuation": "be used", "gold": 0})")
                              .value();
  EXPECT_EQ(score.right, 1u);
  EXPECT_EQ(score.items[0].options[0].tokens, score.items[0].options[1].tokens);
}

TEST_F(TasksOfTheTinyModel, LongQuestionsLoseTheirBeginning) {
  std::string long_context;
  for (int i = 0; i < 40; ++i) long_context += "the device ";
  const std::string lines = R"({"query": ")" + long_context + R"(You can", )" +
                            R"("choices": ["be used", "be green"], "gold": 0})";
  EXPECT_EQ(Score(lines).value().cut, 0u);
  Open(24);
  const TaskScore cut = Score(lines).value();
  EXPECT_EQ(cut.cut, 1u);
  EXPECT_EQ(cut.right, 1u);
  const std::string answer =
      R"({"query": "x", "choices": ["b", ")" + long_context + R"("], "gold": 0})";
  EXPECT_THAT(Score("\n" + answer).status().message(),
              testing::AllOf(HasSubstr("t.jsonl, line 2"), HasSubstr("the context of 24 holds")));
}

}  // namespace
}  // namespace troupe
