#include "runtime/embedding_sum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::ElementsAre;

TEST(EmbeddingSum, AMeansDirectionIsTheSums) {
  EmbeddingSum sum(Pooling::kMean);
  sum.Add(std::vector<float>{1, 2});
  sum.Add(std::vector<float>{2, 2});
  EXPECT_THAT(sum.Value(), ElementsAre(0.6f, 0.8f));
  EXPECT_EQ(sum.rows(), 2u);
}

TEST(EmbeddingSum, TheLastRowMayBeTheOnlyOneThatCounts) {
  EmbeddingSum sum(Pooling::kLast);
  sum.Add(std::vector<float>{9, 1});
  sum.Add(std::vector<float>{0, -5});
  EXPECT_THAT(sum.Value(), ElementsAre(0.0f, -1.0f));
}

TEST(EmbeddingSum, RowsThatCancelEachOtherAreZeros) {
  EmbeddingSum sum(Pooling::kMean);
  sum.Add(std::vector<float>{1, -1});
  sum.Add(std::vector<float>{-1, 1});
  EXPECT_THAT(sum.Value(), ElementsAre(0.0f, 0.0f));
}

}  // namespace
}  // namespace troupe
