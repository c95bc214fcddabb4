#include "expert/forecast/score_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/rng.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

constexpr ExpertGrid kMapGrid{.layers = 4, .experts = 6};

// A text in which a token says what its layers choose and which token follows.
std::uint32_t After(std::uint32_t token) { return (token + 1) % kMapGrid.experts; }
std::uint32_t ChosenBy(std::uint32_t token, std::uint32_t layer) {
  return (token + layer) % kMapGrid.experts;
}

std::vector<float> ScoresOf(std::uint32_t token, std::uint32_t layer, Rng& rng) {
  std::vector<float> scores(kMapGrid.experts);
  for (float& score : scores) score = 0.01f + 0.02f * static_cast<float>(rng.Uniform());
  scores[ChosenBy(token, layer)] = 0.9f;
  return scores;
}

std::uint32_t Likeliest(std::span<const float> logits) {
  return static_cast<std::uint32_t>(std::ranges::max_element(logits) - logits.begin());
}

PassFacts OneRow(std::uint32_t position, SequenceId sequence = 0) {
  return {.first_layer = 0, .groups = {{.sequence = sequence, .position = position, .rows = 1}}};
}

class ScoreMapTest : public testing::Test {
 protected:
  // One token through all layers; counts what was predicted, and what of that was right.
  void Pass(std::uint32_t token, std::uint32_t position, SequenceId sequence = 0) {
    map_.OnPassBegins(OneRow(position, sequence));
    for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
      map_.OnScores(layer, ScoresOf(token, layer, rng_));
      for (std::uint32_t ahead = 1; ahead <= map_.reach(); ++ahead) {
        const std::span<const float> logits = map_.Predict(0, ahead);
        if (logits.empty()) continue;
        const bool next = layer + ahead >= kMapGrid.layers;
        const std::uint32_t target = (layer + ahead) % kMapGrid.layers;
        EXPECT_EQ(map_.LayerAhead(ahead), target);
        ++predicted_;
        right_ += Likeliest(logits) == ChosenBy(next ? After(token) : token, target) ? 1 : 0;
      }
    }
  }

  Rng rng_{TestSeed()};
  ScoreMap map_{kMapGrid, 1};
  std::uint64_t predicted_ = 0, right_ = 0;
};

TEST_F(ScoreMapTest, SaysNothingBeforeAWholePassHasShownTheLayers) {
  Pass(0, 0);
  EXPECT_EQ(predicted_, 0u);
  EXPECT_EQ(map_.LayerAhead(1), std::nullopt);
  Pass(After(0), 1);
  EXPECT_EQ(predicted_, kMapGrid.layers * map_.reach());
}

TEST_F(ScoreMapTest, LearnsWhatFollowsInTheTokenAndInTheNext) {
  std::uint32_t token = 0;
  for (std::uint32_t i = 0; i < 400; ++i, token = After(token)) {
    if (i == 300) predicted_ = right_ = 0;
    Pass(token, i);
  }
  EXPECT_GT(predicted_, 1000u);
  EXPECT_EQ(right_, predicted_);
}

TEST_F(ScoreMapTest, EachSequenceFollowsItsOwnLastToken) {
  std::uint32_t tokens[] = {0, 2};
  for (std::uint32_t i = 0; i < 600; ++i) {
    if (i == 500) predicted_ = right_ = 0;
    Pass(tokens[i % 2], i / 2, i % 2);
    tokens[i % 2] = After(tokens[i % 2]);
  }
  EXPECT_EQ(right_, predicted_);
}

TEST_F(ScoreMapTest, OfADraftWhatTheTextHasIsLearned) {
  const auto pass = [&](std::uint32_t position, std::uint32_t rows, std::uint32_t guessed) {
    map_.OnPassBegins(
        {.first_layer = 0, .groups = {{.position = position, .rows = rows, .guessed = guessed}}});
    for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
      std::vector<float> scores;
      for (std::uint32_t row = 0; row < rows; ++row) {
        const std::vector<float> one = ScoresOf(row, layer, rng_);
        scores.insert(scores.end(), one.begin(), one.end());
      }
      map_.OnScores(layer, scores);
    }
  };
  pass(0, 1, 0);
  pass(1, 4, 3);
  const std::uint32_t right = 2;
  map_.OnGuessesChecked({&right, 1});
  pass(4, 4, 3);  // of which none was right
  EXPECT_EQ(map_.learned_tokens(), 3u);
  pass(5, 1, 0);
  EXPECT_EQ(map_.learned_tokens(), 4u);
}

TEST_F(ScoreMapTest, ScoresThatAreNoNumbersTeachNothing) {
  std::uint32_t token = 0;
  for (std::uint32_t i = 0; i < 100; ++i, token = After(token)) Pass(token, i);
  map_.OnPassBegins(OneRow(100));
  const std::uint64_t learned = map_.learned_tokens();
  for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
    map_.OnScores(layer, std::vector<float>(kMapGrid.experts, std::nanf("")));
    EXPECT_TRUE(map_.Predict(0, 1).empty());
  }
  map_.OnPassBegins(OneRow(101));
  EXPECT_EQ(map_.learned_tokens(), learned);
  map_.OnScores(0, ScoresOf(1, 0, rng_));
  for (const float logit : map_.Predict(0, 1)) EXPECT_TRUE(std::isfinite(logit));
}

TEST_F(ScoreMapTest, ScoresThatOverflowTeachNothing) {
  const float most = std::numeric_limits<float>::max();
  for (std::uint32_t i = 0; i < 20; ++i) {
    map_.OnPassBegins(OneRow(i));
    for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
      std::vector<float> scores(kMapGrid.experts, -most);
      scores[layer] = most;
      map_.OnScores(layer, scores);
    }
  }
  EXPECT_EQ(map_.learned_tokens(), 0u);
  for (std::uint32_t i = 0; i < 3; ++i) Pass(i, 20 + i);
  EXPECT_GT(map_.learned_tokens(), 0u);
  map_.OnPassBegins(OneRow(23));
  map_.OnScores(0, ScoresOf(3, 0, rng_));
  for (const float logit : map_.Predict(0, 1)) EXPECT_TRUE(std::isfinite(logit));
}

TEST_F(ScoreMapTest, OfManyRowsTheLastAreLookedAtAlsoWhereOnlyTheyAreGiven) {
  map_.OnPassBegins({.first_layer = 0, .groups = {{.phase = Phase::kPrompt, .rows = 100}}});
  for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
    std::vector<float> scores;
    for (int row = 0; row < 20; ++row) {
      const std::vector<float> one = ScoresOf(3, layer, rng_);
      scores.insert(scores.end(), one.begin(), one.end());
    }
    map_.OnScores(layer, scores);
  }
  EXPECT_EQ(map_.rows(), ScoreMap::kMostRows);
  map_.OnPassBegins(OneRow(100));
  map_.OnScores(0, ScoresOf(3, 0, rng_));
  EXPECT_FALSE(map_.Predict(0, 1).empty());
}

TEST_F(ScoreMapTest, StaysWithinItsBytesWhateverPasses) {
  for (std::uint32_t i = 0; i < 300; ++i) {
    PassFacts facts{.first_layer = 0, .groups = {}};
    for (std::uint64_t groups = 1 + rng_.Below(12); groups > 0; --groups) {
      facts.groups.push_back({.sequence = static_cast<SequenceId>(rng_.Below(40)),
                              .position = static_cast<std::uint32_t>(rng_.Below(3)),
                              .rows = static_cast<std::uint32_t>(1 + rng_.Below(20))});
    }
    map_.OnPassBegins(facts);
    for (std::uint32_t layer = 0; layer < kMapGrid.layers; ++layer) {
      std::vector<float> scores(std::size_t{facts.rows()} * kMapGrid.experts);
      for (float& score : scores) score = static_cast<float>(rng_.Uniform());
      map_.OnScores(layer, scores);
    }
    ASSERT_LE(map_.bytes(), ScoreMap::BytesFor(kMapGrid));
  }
}

TEST(ScoreMapShape, TablesOfManyExpertsReachLessFar) {
  EXPECT_EQ(ScoreMap::ReachFor({.layers = 8, .experts = 32}), ScoreMap::kMostReach);
  const ExpertGrid large{.layers = 60, .experts = 256};
  EXPECT_EQ(ScoreMap::ReachFor(large), 1u);
  EXPECT_EQ(ScoreMap::ReachFor({.layers = 1, .experts = 8}), 1u);
}

// As if it had never stopped: another text begins with the same tables.
TEST_F(ScoreMapTest, GoesOnLearningFromTablesThatWereKept) {
  std::uint32_t token = 0;
  for (std::uint32_t i = 0; i < 100; ++i, token = After(token)) Pass(token, i);
  ScoreTables kept;
  map_.MoveTo(kept);
  EXPECT_EQ(kept.tokens, 99u);  // the first pass shows the layers
  ScoreTables begun = kept;
  ScoreMap unbroken(kMapGrid, 1, &begun);
  ScoreTables again;
  unbroken.MoveTo(again);
  EXPECT_EQ(again, kept);

  begun = kept;
  map_ = ScoreMap(kMapGrid, 1, &begun);
  predicted_ = right_ = 0;
  Pass(0, 0);  // the layers are known already
  EXPECT_EQ(predicted_, kMapGrid.layers * map_.reach());
  EXPECT_GT(right_, predicted_ / 2);
  ScoreTables further;
  map_.MoveTo(further);
  EXPECT_EQ(further.tokens, kept.tokens + 1);
  EXPECT_NE(further.weights, kept.weights);
}

}  // namespace
}  // namespace troupe
