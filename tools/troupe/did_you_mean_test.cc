#include "troupe/did_you_mean.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe {
namespace {

TEST(EditDistance, CountsLettersAddedDroppedChangedAndSwapped) {
  EXPECT_EQ(EditDistance("cache", "cache"), 0u);
  EXPECT_EQ(EditDistance("cach", "cache"), 1u);
  EXPECT_EQ(EditDistance("caache", "cache"), 1u);
  EXPECT_EQ(EditDistance("cashe", "cache"), 1u);
  EXPECT_EQ(EditDistance("cahce", "cache"), 1u);
  EXPECT_EQ(EditDistance("", "cache"), 5u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(DidYouMean, PicksTheNearestWord) {
  const std::vector<std::string> words = {"--cache-share", "--cache", "--chat", "--temperature"};
  EXPECT_EQ(DidYouMean("--cahce", words), "--cache");
  EXPECT_EQ(DidYouMean("--cht", words), "--chat");
  EXPECT_EQ(DidYouMean("--temprature", words), "--temperature");
}

TEST(DidYouMean, TakesTheBeginningOfAWordForTheWord) {
  const std::vector<std::string> words = {"--cache", "--temperature"};
  EXPECT_EQ(DidYouMean("--temp", words), "--temperature");
  EXPECT_EQ(DidYouMean("--te", words), std::nullopt);
}

TEST(DidYouMean, SuggestsNothingThatIsFarAway) {
  const std::vector<std::string> words = {"run", "bench"};
  EXPECT_EQ(DidYouMean("ruin", words), "run");
  EXPECT_EQ(DidYouMean("serve", words), std::nullopt);
  EXPECT_EQ(DidYouMean("", words), std::nullopt);
  EXPECT_EQ(DidYouMean("run", {}), std::nullopt);
}

}  // namespace
}  // namespace troupe
