#include "text/draft/drafters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/draft/expected_text.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum Drafter::Part;

TEST(Drafters, AreChosenByName) {
  for (const std::string& name : DraftChoiceNames()) EXPECT_TRUE(ParseDraftChoice(name).ok());
  EXPECT_FALSE(ParseDraftChoice("off")->any());
  EXPECT_TRUE(ParseDraftChoice("auto")->lookup);
  const Status unknown = ParseDraftChoice("magic").status();
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_THAT(unknown.message(), HasSubstr("'magic', expected one of auto, off, lookup"));
}

TEST(Drafters, AreThoseOfTheChoice) {
  const auto drafters = MakeDrafters(*ParseDraftChoice("auto"), 10, nullptr);
  ASSERT_EQ(drafters.size(), 1u);  // no rule, no grammar's
  EXPECT_EQ(drafters[0]->source(), DraftSource::kLookup);
  EXPECT_THAT(MakeDrafters({}, 10, nullptr), IsEmpty());
  EXPECT_GT(DrafterBytes(*ParseDraftChoice("auto"), 10), Bytes());
  EXPECT_EQ(DrafterBytes({}, 10), Bytes());
}

TEST(Drafters, OfAControlAreSureAndOfTheTextsTokens) {
  for (const char* name : {"wrong", "random"}) {
    const auto drafters = MakeDrafters(*ParseDraftChoice(name), 10, nullptr);
    ASSERT_EQ(drafters.size(), 1u);
    EXPECT_THAT(drafters[0]->Propose(3).tokens, IsEmpty());
    const std::vector<TokenId> prompt = {5, 6, 7};
    drafters[0]->Append(prompt, kPrompt);
    const Draft draft = drafters[0]->Propose(20);
    EXPECT_EQ(draft.tokens.size(), 20u);
    EXPECT_GE(draft.evidence, 64u);
    for (const TokenId token : draft.tokens) EXPECT_THAT(prompt, testing::Contains(token));
  }
}

TEST(ExpectedText, IsGuessedUntilTheAnswerDiffers) {
  ExpectedText drafter({1, 2, 3, 4});
  const std::vector<TokenId> prompt = {9, 9}, right = {1, 2}, wrong = {5};
  drafter.Append(prompt, kPrompt);
  EXPECT_THAT(drafter.Propose(3).tokens, ElementsAre(1, 2, 3));
  drafter.Append(right, kAnswer);
  EXPECT_THAT(drafter.Propose(3).tokens, ElementsAre(3, 4));
  drafter.Append(wrong, kAnswer);
  EXPECT_THAT(drafter.Propose(3).tokens, IsEmpty());
}

}  // namespace
}  // namespace troupe
