#include "text/draft/lookup_drafter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using enum Drafter::Part;

TEST(LookupDrafter, GoesOnAsThePromptDid) {
  LookupDrafter drafter;
  const std::vector<TokenId> prompt = {1, 2, 3, 4, 5, 6, 7}, answer = {2, 3};
  drafter.Append(prompt, kPrompt);
  EXPECT_THAT(drafter.Propose(4).tokens, IsEmpty());
  drafter.Append(answer, kAnswer);
  const Draft draft = drafter.Propose(3);
  EXPECT_THAT(draft.tokens, ElementsAre(4, 5, 6));
  EXPECT_EQ(draft.evidence, 2u);
}

TEST(LookupDrafter, GoesOnAsTheAnswerDid) {
  LookupDrafter drafter;
  const std::vector<TokenId> prompt = {9, 8}, answer = {1, 2, 3, 1, 2};
  drafter.Append(prompt, kPrompt);
  drafter.Append(answer, kAnswer);
  EXPECT_THAT(drafter.Propose(2).tokens, ElementsAre(3, 1));
}

TEST(LookupDrafter, GoesOnBeyondTheEndOfATextThatRepeatsItself) {
  LookupDrafter drafter;
  const std::vector<TokenId> text = {1, 2, 3, 1, 2, 3};
  drafter.Append(text, kPrompt);
  EXPECT_THAT(drafter.Propose(8).tokens, ElementsAre(1, 2, 3, 1, 2, 3, 1, 2));
}

TEST(LookupDrafter, TheLongestEndDecides) {
  LookupDrafter drafter;
  const std::vector<TokenId> text = {3, 7, 1, 2, 3, 8, 0, 1, 2, 3};
  drafter.Append(text, kPrompt);
  EXPECT_THAT(drafter.Propose(1).tokens, ElementsAre(8));
}

}  // namespace
}  // namespace troupe
