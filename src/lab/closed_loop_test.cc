#include "lab/closed_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plain_answer_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kLoopModel = TROUPE_SOURCE_DIR "/models/tiny-qwen2moe-q8_0.gguf";

TEST(NoteSame, CountsPlacesThatAreTheSameAndWhatComesBeforeTheFirstChange) {
  LoopAnswer answer{.exact = {1, 2, 3, 4, 5}, .lossy = {1, 2, 9, 4, 9}};
  NoteSame(answer);
  EXPECT_EQ(answer.same, 3u);
  EXPECT_EQ(answer.first_change, 2u);
  answer.lossy = answer.exact;
  NoteSame(answer);
  EXPECT_EQ(answer.same, 5u);
  EXPECT_EQ(answer.first_change, 5u);
}

TEST(PromptsFrom, TakesPiecesFromAllOverTheText) {
  const std::vector<TokenId> text = {0, 1, 2, 3, 4, 5, 6};
  const auto prompts = PromptsFrom(text, 2, 2, std::nullopt).value();
  EXPECT_EQ(prompts, (std::vector<std::vector<TokenId>>{{0, 1}, {3, 4}}));
  EXPECT_EQ(PromptsFrom(text, 1, 2, 9).value().front(), (std::vector<TokenId>{9, 0, 1}));
  EXPECT_THAT(PromptsFrom(text, 4, 2, std::nullopt).status().message(),
              HasSubstr("7 tokens, expected 8 for 4 prompts of 2"));
}

class ClosedLoopOfTheTinyModel : public testing::Test {
 protected:
  Result<LoopComparison> Compare(const std::string& chain, std::size_t tokens = 24) {
    engine_ =
        Engine::Open(kLoopModel,
                     {.threads = 1,
                      .context = 128,
                      .offload = {.slots = 40, .predictor = "none", .lossiness = Chain{chain}}})
            .value();
    TROUPE_ASSIGN_OR_RETURN(LossySwitch experts, LossySwitch::Of(*engine_));
    Session session = Session::Create(*engine_).value();
    return CompareInTheLoop(session, experts, {kPrompt, kOther}, {.tokens = tokens});
  }

  const std::vector<TokenId> kPrompt = {1, 400, 500, 600}, kOther = {1, 700, 350};
  std::unique_ptr<Engine> engine_;
};

TEST_F(ClosedLoopOfTheTinyModel, WithGatesClosedNothingDiffers) {
  const LoopComparison found = Compare("drop:rho=0").value();
  ASSERT_EQ(found.answers.size(), 2u);
  EXPECT_EQ(found.unchanged, 2u);
  EXPECT_EQ(found.same_tokens.mean, 1);
  EXPECT_EQ(found.first_change.mean, 24);
  EXPECT_EQ(found.nll_change.mean, 0);
  EXPECT_EQ(engine_->expert_usage().NotExact(), 0u);
  // The exact answers asked for as much, and so did telling how likely either is.
  const auto asks = [](const ExpertUsage& usage) { return usage.hits + usage.misses; };
  EXPECT_GT(asks(found.usage), 0u);
  EXPECT_LT(2 * asks(found.usage), asks(engine_->expert_usage()));
}

TEST_F(ClosedLoopOfTheTinyModel, TheExactTextIsThatOfAnExactEngineAndTheOtherIsPricedByIt) {
  const LoopComparison found = Compare("drop").value();
  EXPECT_GT(engine_->expert_usage().dropped, 0u);
  EXPECT_LT(found.unchanged, 2u);
  EXPECT_LT(found.same_tokens.mean, 1);
  EXPECT_LT(found.first_change.mean, 24);
  EXPECT_GT(found.nll_change.mean, 0);  // the exact model likes its own text better
  const auto exact = Engine::Open(kLoopModel, {.threads = 1, .context = 128}).value();
  Session session = Session::Create(*exact).value();
  const Answer truth =
      PlainAnswer(session, exact->tokenizer(), kPrompt,
                  {.max_tokens = 24, .sampler = {.temperature = 0}, .ignore_end = true});
  EXPECT_EQ(found.answers[0].exact, truth.tokens);
}

TEST_F(ClosedLoopOfTheTinyModel, AnEngineThatIsExactHasNothingToCompare) {
  EXPECT_THAT(Compare("exact").status().message(), HasSubstr("nothing allows an answer"));
}

}  // namespace
}  // namespace troupe
