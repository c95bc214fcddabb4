// Rules for answers on a model whose tokens know nothing of them.
#include "api/answer_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/tiny_model_for_test.h"
#include "base/json.h"
#include "text/tiny_vocab_for_test.h"

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

TEST_F(AnswerRulesTest, ACostlyRuleEndsItsOwnAnswerAndIsNamed) {
  const std::string costly = "root ::= ([a-z]{0,50} [a-z]{0,50}){0,500}";
  const auto error = [](AnswerRule rule) {
    const Status status = model_->Start(With(std::move(rule)))->Wait().status();
    EXPECT_EQ(status.code(), Code::kResourceExhausted);
    return status.message();
  };
  EXPECT_THAT(error({Kind::kGrammar, costly}),
              testing::StartsWith("grammar: the grammar takes too much work"));
  EXPECT_THAT(error({Kind::kGrammar, costly, "request: grammar"}),
              testing::StartsWith("request: grammar: the grammar takes"));
  EXPECT_THAT(error({Kind::kJsonSchema,
                     R"({"type":"string","pattern":"^([a-z]{0,50} ?[a-z]{0,50}){0,100}$"})"}),
              testing::StartsWith("schema: the grammar takes"));
}

TEST_F(AnswerRulesTest, TheTimeThatARuleTakesIsCounted) {
  const double before = model_->metrics().rule_seconds;
  EXPECT_EQ(AnswerTo(Ask("The kernel", 20, 3)).usage.rule_seconds, 0);
  EXPECT_EQ(model_->metrics().rule_seconds, before);
  const Answer ruled = AnswerTo(With({Kind::kJsonObject, ""}));
  EXPECT_GT(ruled.usage.rule_seconds, 0);
  EXPECT_DOUBLE_EQ(model_->metrics().rule_seconds, before + ruled.usage.rule_seconds);
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

// A grammar of its own, of about 36 bytes a letter.
AnswerRule RuleOf(int number, std::size_t letters = 1000) {
  std::string text = "root ::= \"" + std::to_string(number) + " ";
  return {Kind::kGrammar, text + std::string(letters, 'a') + "\""};
}

class AnswerRuleMemory : public testing::Test {
 protected:
  const std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer(TinyByteLevelVocab()).value();
  AnswerRules rules_{*tokenizer_, {}, {.rules = 200_KiB}};
};

TEST_F(AnswerRuleMemory, RulesStayAsLongAsThereIsRoom) {
  const auto first = rules_.For(RuleOf(0)).value();
  EXPECT_EQ(rules_.kept(), 1u);
  const Bytes of_one = rules_.rule_bytes();
  EXPECT_GT(of_one, 30_KiB);
  ASSERT_TRUE(rules_.For(RuleOf(0)).ok());
  EXPECT_EQ(rules_.rule_bytes(), of_one);
  for (int number = 1; number < 50; ++number) {
    ASSERT_TRUE(rules_.For(RuleOf(number)).ok()) << number;
    ASSERT_LE(rules_.rule_bytes(), 200_KiB);
  }
  EXPECT_EQ(rules_.kept(), 200_KiB / of_one);
  // The one in use is still there: it is not compiled again.
  const Bytes all = rules_.rule_bytes();
  ASSERT_TRUE(rules_.For(RuleOf(0)).ok());
  EXPECT_EQ(rules_.rule_bytes(), all);
}

TEST_F(AnswerRuleMemory, RulesOfRequestsUnderWayLetOthersComeAgain) {
  std::vector<std::shared_ptr<TokenConstraint>> under_way;
  Status refused;
  for (int number = 0; refused.ok(); ++number) {
    auto constraint = rules_.For(RuleOf(number));
    if (constraint.ok()) under_way.push_back(*std::move(constraint));
    refused = constraint.status();
  }
  EXPECT_GE(under_way.size(), 3u);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_GT(refused.retry_after(), 0);
  EXPECT_TRUE(rules_.For(RuleOf(0)).ok());  // it is there
  under_way.pop_back();
  EXPECT_TRUE(rules_.For(RuleOf(99)).ok());
}

TEST_F(AnswerRuleMemory, ARuleThatNeverHasRoomIsRefused) {
  const Status status = rules_.For(RuleOf(0, 10'000)).status();
  EXPECT_NE(status.code(), Code::kOk);
  EXPECT_EQ(status.retry_after(), 0);
  EXPECT_EQ(rules_.kept(), 0u);
}

TEST(AnswerRulesBytes, DoNotGrowByRulesWithTheRequests) {
  const Bytes one = AnswerRules::MostBytes(1000, 1), more = AnswerRules::MostBytes(1000, 17);
  EXPECT_EQ(more - one, 16 * AnswerRuleLimits().each);
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
