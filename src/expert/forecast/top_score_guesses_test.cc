#include "expert/forecast/top_score_guesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "expert/forecast/gate_guesses.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::uint32_t> Experts(const TopScores& top) {
  std::vector<std::uint32_t> experts;
  for (const Guess& guess : top.guesses) experts.push_back(guess.expert);
  return experts;
}

TEST(TopScoreGuessesTest, LeavesOutWhatASubstituteMayReplace) {
  const std::vector<float> row = {0.05f, 0.4f, 0.12f, 0.1f, 0.3f, 0.03f};  // k = 3: boundary 0.1
  const GateScores forecast{.experts = 6, .scores = row};
  EXPECT_THAT(Experts(TopScoreGuesses(forecast, 3, 0.3, ForecastRows::kScores)), ElementsAre(1, 4));
  EXPECT_THAT(Experts(TopScoreGuesses(forecast, 3, 0, ForecastRows::kScores)),
              ElementsAre(1, 4, 2));
  EXPECT_THAT(Experts(TopScoreGuesses(forecast, 3, 1, ForecastRows::kScores)), ElementsAre(1, 4));
}

TEST(TopScoreGuessesTest, CountsWhatItLeavesOut) {
  const std::vector<float> row = {0.05f, 0.4f, 0.12f, 0.1f, 0.3f, 0.03f};
  const GateScores forecast{.experts = 6, .scores = row};
  const std::size_t all = GuessesFrom(forecast, 3).size();
  EXPECT_EQ(TopScoreGuesses(forecast, 3, 0, ForecastRows::kScores).left_out, all - 3);
  EXPECT_EQ(TopScoreGuesses(forecast, 3, 0.3, ForecastRows::kScores).left_out, all - 2);
}

TEST(TopScoreGuessesTest, ReadsLogitsAsTheScoresThatTheyBecome) {
  const std::vector<float> row = {std::log(0.05f), std::log(0.4f), std::log(0.12f), std::log(0.1f),
                                  std::log(0.3f)};
  const GateScores forecast{.experts = 5, .scores = row};
  EXPECT_THAT(Experts(TopScoreGuesses(forecast, 3, 0.3, ForecastRows::kLogits)), ElementsAre(1, 4));
  EXPECT_THAT(Experts(TopScoreGuesses(forecast, 3, 0.1, ForecastRows::kLogits)),
              ElementsAre(1, 4, 2));
}

TEST(TopScoreGuessesTest, WithoutAForecastGuessesNothing) {
  const TopScores none =
      TopScoreGuesses({.experts = 5, .scores = {}}, 3, 0.3, ForecastRows::kScores);
  EXPECT_THAT(none.guesses, IsEmpty());
  EXPECT_EQ(none.left_out, 0u);
}

}  // namespace
}  // namespace troupe
