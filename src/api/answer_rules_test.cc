// Rules for answers on a model whose tokens know nothing of them.
#include "api/answer_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tiny_model_for_test.h"
#include "base/json.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using Kind = AnswerRule::Kind;

class AnswerRulesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = OpenTiny({.sequences = 3, .answer_rules = true}).release();
  }
  static void TearDownTestSuite() { delete std::exchange(model_, nullptr); }

  static Request With(AnswerRule rule, std::uint64_t seed = 1, std::size_t tokens = 80) {
    Request request = Ask("The kernel", tokens, seed);
    request.sampling.temperature = 1.5;
    request.rule = std::move(rule);
    return request;
  }
  static Answer AnswerTo(Request request) {
    return model_->Start(std::move(request))->Wait().value();
  }

  static Model* model_;
};

Model* AnswerRulesTest::model_ = nullptr;

TEST_F(AnswerRulesTest, AnAnswerIsATextOfItsGrammarAndEndsWithIt) {
  const AnswerRule rule = {Kind::kGrammar, R"(root ::= ("yes" | "no") ", " [0-9]{3})"};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Answer answer = AnswerTo(With(rule, seed));
    EXPECT_THAT(answer.text, testing::MatchesRegex("(yes|no), [0-9][0-9][0-9]"));
    EXPECT_EQ(answer.finish, FinishReason::kEndToken);
  }
}

TEST_F(AnswerRulesTest, AnAnswerIsAValueThatItsSchemaAllows) {
  const AnswerRule rule = {Kind::kJsonSchema,
                           R"({"type":"object","properties":{"size":{"type":"integer","minimum":5,
                           "maximum":9},"free":{"type":"boolean"}},"required":["size","free"]})"};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Answer answer = AnswerTo(With(rule, seed));
    const std::optional<Json> json = Json::Parse(answer.text);
    ASSERT_TRUE(json) << answer.text;
    EXPECT_GE(json->Find("size")->AsCount(), 5u);
    EXPECT_LE(json->Find("size")->AsCount(), 9u);
    EXPECT_TRUE(json->Find("free")->IsBool());
  }
}

TEST_F(AnswerRulesTest, ARuleChangesNobodyElsesAnswer) {
  const Answer alone = AnswerTo(Ask("The kernel", 60, 3));
  const AnswerRule rule = {Kind::kJsonObject, ""};
  auto with = model_->Start(With(rule)), other = model_->Start(With(rule, 2));
  auto free = model_->Start(Ask("The kernel", 60, 3));
  EXPECT_EQ(free->Wait()->tokens, alone.tokens);
  EXPECT_EQ(with->Wait()->tokens, AnswerTo(With(rule)).tokens);
  EXPECT_EQ(other->Wait()->tokens, AnswerTo(With(rule, 2)).tokens);
}

TEST_F(AnswerRulesTest, ARuleThatIsNoneIsRefusedWithItsReason) {
  const auto error = [](AnswerRule rule) {
    const Result<Generation> started = model_->Start(With(std::move(rule)));
    EXPECT_EQ(started.status().code(), Code::kInvalidArgument);
    return started.status().message();
  };
  EXPECT_THAT(error({Kind::kGrammar, "root ::= other"}), HasSubstr("grammar: "));
  EXPECT_THAT(error({Kind::kJsonSchema, "{"}), HasSubstr("schema: not JSON"));
  EXPECT_THAT(error({Kind::kJsonSchema, R"({"type":"object","minProperties":1})"}),
              HasSubstr("minProperties"));
}

TEST_F(AnswerRulesTest, AModelThatWasOpenedWithoutThemSaysSo) {
  const std::unique_ptr<Model> plain = OpenTiny();
  EXPECT_EQ(plain->Start(With({Kind::kJsonObject, ""})).status().code(), Code::kFailedPrecondition);
}

TEST_F(AnswerRulesTest, AnAnswerThatIsCutOffIsABeginning) {
  const Answer answer = AnswerTo(With({Kind::kGrammar, R"(root ::= "abcdefghijklmnop")"}, 1, 2));
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_THAT(std::string("abcdefghijklmnop"), testing::StartsWith(answer.text));
}

}  // namespace
}  // namespace troupe
