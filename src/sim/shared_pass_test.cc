#include "sim/shared_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;

// Three tokens of two layers of four experts, two each.
const RoutingTrace kTrace{.layers = 2,
                          .experts = 4,
                          .top_k = 2,
                          .tokens = 3,
                          .ids = {0, 1, 1, 2, 0, 1, 3, 2, 3, 2, 3, 2},
                          .sequence_starts = {0}};

PassPart Part(std::uint32_t prompt, std::uint32_t first, std::uint32_t tokens) {
  return {.prompt = prompt, .trace = &kTrace, .first = first, .tokens = tokens};
}

TEST(SharedPassTest, WhoeverIsReadyWhenItBeginsTakesPart) {
  SharedPass pass(4);
  EXPECT_FALSE(pass.Begin());
  pass.Join(Part(7, 0, 2));
  EXPECT_TRUE(pass.Begin());
  pass.Join(Part(8, 0, 1));
  pass.Join(Part(9, 1, 1));
  EXPECT_FALSE(pass.Begin());  // one is under way
  EXPECT_EQ(pass.tokens(), 2u);
  pass.End();
  EXPECT_TRUE(pass.Begin());
  EXPECT_EQ(pass.parts().size(), 2u);
  EXPECT_EQ(pass.tokens(), 2u);
}

TEST(SharedPassTest, TheTracesTokensGoOnFromItsBeginning) {
  SharedPass pass(4);
  pass.Join(Part(0, 2, 2));  // tokens 2 and 0
  ASSERT_TRUE(pass.Begin());
  EXPECT_THAT(pass.DemandsOf(0), ElementsAre(ExpertDemand{.expert = 0, .tokens = 2},
                                             ExpertDemand{.expert = 1, .tokens = 2}));
}

TEST(SharedPassTest, ChoicesAreCountedByPartAndTogether) {
  SharedPass pass(4);
  pass.Join(Part(0, 0, 2));
  pass.Join(Part(1, 1, 1));
  ASSERT_TRUE(pass.Begin());
  EXPECT_THAT(pass.CountsOf(0), ElementsAre(1, 2, 1, 0, 0, 1, 1, 0));
  EXPECT_THAT(pass.DemandsOf(0), ElementsAre(ExpertDemand{.expert = 0, .tokens = 1},
                                             ExpertDemand{.expert = 1, .tokens = 3},
                                             ExpertDemand{.expert = 2, .tokens = 2}));
  const std::uint32_t two[] = {1, 2};
  EXPECT_EQ(pass.RowsOf(0, two).tokens, 3u);
  EXPECT_EQ(pass.RowsOf(0, two).assignments, 5u);
  EXPECT_EQ(pass.RowsOf(0, {two, 0}).tokens, 0u);
}

TEST(SharedPassTest, APromptKeepsItsSequenceUntilItLeaves) {
  SharedPass pass(4);
  const auto sequences = [&] {
    EXPECT_TRUE(pass.Begin());
    std::vector<SequenceId> of;
    for (const RowGroupFacts& group : pass.Facts().groups) of.push_back(group.sequence);
    pass.End();
    return of;
  };
  pass.Join(Part(5, 0, 1));
  pass.Join(Part(6, 0, 1));
  EXPECT_THAT(sequences(), ElementsAre(0, 1));
  pass.Join(Part(6, 0, 1));
  EXPECT_THAT(sequences(), ElementsAre(1));
  pass.Leave(5);
  pass.Join(Part(6, 0, 1));
  pass.Join(Part(7, 0, 1));
  EXPECT_THAT(sequences(), ElementsAre(1, 0));
}

}  // namespace
}  // namespace troupe
