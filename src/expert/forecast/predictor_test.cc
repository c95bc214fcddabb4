#include "expert/forecast/predictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/rng.h"
#include "expert/forecast/activation_path.h"
#include "expert/forecast/cross_layer_gate.h"
#include "expert/forecast/lookahead_gate.h"
#include "expert/forecast/oracle.h"
#include "expert/forecast/previous_token.h"
#include "expert/forecast/smoe_gate.h"
#include "testing/test_seed.h"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr ExpertGrid kGrid{.layers = 3, .experts = 8};

std::vector<std::uint32_t> ExpertsOf(const std::vector<Guess>& guesses) {
  std::vector<std::uint32_t> experts;
  for (const Guess& guess : guesses) experts.push_back(guess.expert);
  return experts;
}

std::vector<std::uint32_t> ExpectedOf(const std::vector<Guess>& guesses) {
  std::vector<std::uint32_t> experts;
  for (const Guess& guess : guesses) {
    if (guess.expected) experts.push_back(guess.expert);
  }
  return experts;
}

std::vector<Guess> Ask(Predictor& predictor, const std::vector<float>& scores,
                       std::uint32_t layer = 1, std::uint32_t ahead = 1) {
  return predictor.Predict(layer, ahead, {.experts = kGrid.experts, .scores = scores});
}

TEST(CrossLayerGateTest, GuessesTheTopAndThenWhatExceedsThe75thPercentile) {
  const std::vector<float> scores = {.02f, .30f, .01f, .20f, .03f, .25f, .04f, .15f};
  // The percentile lies between .20 and .25: two of eight exceed it.
  CrossLayerGate three(3), one(1), none(0);
  EXPECT_THAT(ExpertsOf(Ask(three, scores)), ElementsAre(1, 5, 3));  // the top are guessed anyway
  EXPECT_THAT(ExpertsOf(Ask(one, scores)), ElementsAre(1, 5));
  EXPECT_THAT(ExpectedOf(Ask(one, scores)), ElementsAre(1));
  EXPECT_THAT(ExpertsOf(Ask(none, scores)), ElementsAre(1, 5));
  EXPECT_THAT(ExpectedOf(Ask(none, scores)), IsEmpty());
}

TEST(CrossLayerGateTest, AQuarterOfTheExpertsExceedsThe75thPercentileOfScoresThatDiffer) {
  CrossLayerGate gate(0);
  for (const std::uint32_t experts : {1u, 2u, 4u, 5u, 8u, 32u, 60u, 64u}) {
    std::vector<float> scores(experts);
    for (std::uint32_t e = 0; e < experts; ++e) scores[e] = static_cast<float>(e * e);
    const auto guesses = gate.Predict(1, 1, {.experts = experts, .scores = scores});
    EXPECT_EQ(guesses.size(), (experts + 2) / 4) << experts;
  }
}

TEST(SmoeGateTest, HearsTheGateLateAndGuessesTopScoresWhereOthersAreReplaced) {
  const std::vector<float> scores = {.02f, .30f, .01f, .20f, .03f, .25f, .04f, .15f};
  SmoeGate exact(3, {});
  CrossLayerGate gate(3);
  EXPECT_TRUE(exact.forecasts_with_answers());
  EXPECT_FALSE(gate.forecasts_with_answers());
  EXPECT_EQ(exact.forecast_layers(), 1u);
  EXPECT_EQ(Ask(exact, scores), Ask(gate, scores));
  EXPECT_EQ(exact.left_out(), 0u);
  // The fourth has .15: .20 is within a half of it.
  SmoeGate lossy(3, {.rows = ForecastRows::kScores, .alpha = 0.5, .most_tokens = 1});
  EXPECT_THAT(ExpertsOf(Ask(lossy, scores)), ElementsAre(1, 5));
  EXPECT_EQ(lossy.left_out(), 1u);
  // Passes of more rows get what they ask for.
  std::vector<float> two = scores;
  two.insert(two.end(), scores.begin(), scores.end());
  EXPECT_EQ(Ask(lossy, two), Ask(gate, two));
}

TEST(WrongGateTest, GuessesWhatTheGateRanksLast) {
  const auto wrong = MakePredictor("wrong", kGrid, 1).value();
  const std::vector<float> scores = {.02f, .30f, .01f, .20f, .03f, .25f, .04f, .15f};
  EXPECT_THAT(ExpertsOf(Ask(*wrong, scores)), ElementsAre(2, 0));
}

TEST(CrossLayerGateTest, WithManyTokensThePopularComeFirst) {
  CrossLayerGate gate(2);
  std::vector<float> scores(3 * 8);
  const std::vector<std::vector<std::size_t>> tops = {{4, 2}, {4, 0}, {4, 2}};
  for (std::size_t t = 0; t < tops.size(); ++t) {
    for (const std::size_t e : tops[t]) scores[t * 8 + e] = 1;
  }
  EXPECT_THAT(ExpertsOf(Ask(gate, scores)), ElementsAre(4, 2, 0));
}

TEST(CrossLayerGateTest, ScoresThatAreNoNumbersAreNoGuess) {
  CrossLayerGate gate(2);
  std::vector<float> scores(2 * 8);
  scores[3] = std::numeric_limits<float>::quiet_NaN();
  scores[8 + 5] = scores[8 + 6] = 1;
  EXPECT_THAT(ExpectedOf(Ask(gate, scores)), ElementsAre(5, 6));
  EXPECT_THAT(Ask(gate, {}), IsEmpty());
}

TEST(LookaheadGateTest, BeforeItHasLearnedItGuessesAsTheGateDoes) {
  const std::vector<float> scores = {.02f, .30f, .01f, .20f, .03f, .25f, .04f, .15f};
  LookaheadGate lookahead(kGrid, 2);
  CrossLayerGate gate(2);
  for (const std::uint32_t ahead : {1u, 2u}) {
    EXPECT_EQ(Ask(lookahead, scores, 2, ahead), Ask(gate, scores, 2));
  }
}

TEST(LookaheadGateTest, LearnsWhatForecastsMissByLayerAndDistance) {
  LookaheadGate gate(kGrid, 1);
  Rng rng(TestSeed());
  const auto forecast = [&] {
    std::vector<float> row(8);
    for (float& x : row) x = static_cast<float>(rng.Below(1000)) / 1000;
    return row;
  };
  // What the gate says is the forecast turned by one place: nothing that an offset could say.
  const auto turned = [](std::vector<float> row) {
    std::rotate(row.begin(), row.begin() + 7, row.end());
    return row;
  };
  const auto right = [&](std::uint32_t ahead, bool learn) {
    int hits = 0;
    constexpr int kTokens = 400;
    for (int t = 0; t < kTokens; ++t) {
      const std::vector<float> row = forecast(), said = turned(row);
      const auto guesses = Ask(gate, row, 2, ahead);
      const auto best = static_cast<std::uint32_t>(std::ranges::max_element(said) - said.begin());
      hits += guesses.front().expert == best ? 1 : 0;
      if (learn) gate.OnGateScores(2, {.experts = 8, .scores = said});
    }
    return static_cast<double>(hits) / kTokens;
  };
  EXPECT_LT(right(1, false), 0.3);
  right(1, true);
  EXPECT_GT(right(1, false), 0.7);
  EXPECT_LT(right(2, false), 0.3);  // learned for its own distance alone
  EXPECT_GT(gate.correction().learned_rows(), 399u);
}

TEST(GateCorrectionTest, ForecastsOfAnotherPassTeachNothing) {
  GateCorrection correction(kGrid, 2, 1);
  std::vector<float> two_rows(16, 1.0f), one_row(8, 1.0f);
  correction.Correct(1, 1, two_rows);
  correction.Learn(1, {.experts = 8, .scores = one_row});
  EXPECT_EQ(correction.learned_rows(), 0u);
  correction.Correct(1, 1, one_row);
  correction.Learn(1, {.experts = 8, .scores = one_row});
  EXPECT_EQ(correction.learned_rows(), 1u);
  correction.Learn(1, {.experts = 8, .scores = one_row});  // each forecast once
  EXPECT_EQ(correction.learned_rows(), 1u);
}

TEST(GateCorrectionTest, NumbersThatAreNoneDoNotSpoilIt) {
  GateCorrection correction(kGrid, 2, 1);
  std::vector<float> row(8, 0.5f);
  std::vector<float> broken = row;
  broken[2] = std::numeric_limits<float>::infinity();
  correction.Correct(1, 1, broken);
  correction.Learn(1, {.experts = 8, .scores = row});
  std::vector<float> fine = row;
  correction.Correct(1, 1, fine);
  EXPECT_EQ(fine, row);
}

TEST(GateCorrectionTest, LearnsWhatThePresentLayersChoiceBrings) {
  // The forecast says nothing; what the gate then says is what the layer before has chosen.
  GateCorrection correction({.layers = 4, .experts = 8}, 1, 2);
  const std::vector<float> empty(2 * 8, 0.5f);
  const auto chosen = [](std::uint32_t first, std::uint32_t second) {
    std::vector<float> rows(2 * 8);
    rows[first] = rows[8 + second] = 1;
    return rows;
  };
  const auto forecast = [&](std::uint32_t first, std::uint32_t second, std::uint32_t ahead) {
    const std::vector<float> present = chosen(first, second);
    correction.Learn(1, {.experts = 8, .scores = present});
    std::vector<float> rows = empty;
    correction.Correct(1 + ahead, ahead, rows);
    return rows;
  };
  for (std::uint32_t step = 0; step < 200; ++step) {
    const std::uint32_t first = step % 8, second = (step * 3 + 1) % 8;
    forecast(first, second, 1);
    const std::vector<float> said = chosen((first + 2) % 8, (second + 2) % 8);
    correction.Learn(2, {.experts = 8, .scores = said});
  }
  const auto best = [](std::span<const float> row) {
    return std::ranges::max_element(row) - row.begin();
  };
  const std::vector<float> near = forecast(5, 7, 1);
  EXPECT_EQ(best(std::span(near).first(8)), 7);
  EXPECT_EQ(best(std::span(near).last(8)), 1);
  EXPECT_EQ(forecast(5, 7, 2), empty);  // learned for its own distance alone
}

TEST(GateCorrectionTest, ThePresentLayersChoiceOfAPassOfAnotherSizeIsNotTaken) {
  GateCorrection correction(kGrid, 1, 1);
  std::vector<float> table(LearnedForecast::TableSize(8), 0.0f);
  std::ranges::fill(std::span(table).last(8 * 8), 1.0f);
  const std::vector<LearnedForecast> learned = {
      {.layer = 2, .ahead = 1, .table = table, .offset = std::vector<float>(8)}};
  correction.BeginWith(learned);
  std::vector<float> one_row(8), two_rows(16);
  one_row[3] = two_rows[3] = two_rows[8 + 4] = 1;
  correction.Learn(1, {.experts = 8, .scores = two_rows});
  std::vector<float> row = one_row;
  correction.Correct(2, 1, row);
  EXPECT_EQ(row, one_row);
  correction.Learn(1, {.experts = 8, .scores = one_row});
  correction.Correct(2, 1, row);
  EXPECT_NE(row, one_row);
}

TEST(GateCorrectionTest, TakesNoMoreMemoryThanItSaid) {
  const ExpertGrid wide{.layers = 5, .experts = 64};
  GateCorrection correction(wide, 4, 3);
  std::vector<float> rows(kMostForecastRows * 64, 0.25f);
  for (int pass = 0; pass < 3; ++pass) {
    for (std::uint32_t layer = 0; layer < 5; ++layer) {
      correction.Learn(layer, {.experts = 64, .scores = rows});
      for (std::uint32_t ahead = 1; ahead <= 3 && layer + ahead < 5; ++ahead) {
        std::vector<float> forecast = rows;
        correction.Correct(layer + ahead, ahead, forecast);
      }
    }
  }
  EXPECT_GT(correction.learned_rows(), 0u);
  EXPECT_LE(correction.bytes(), GateCorrection::BytesFor(wide, 3));
}

TEST(ActivationPathTest, GuessesWhatFollowedBefore) {
  ActivationPath path(kGrid, 1);
  const std::vector<ExpertDemand> a = {{1, 1}}, b = {{2, 1}}, after_a = {{5, 1}},
                                  after_b = {{6, 1}};
  for (int i = 0; i < 3; ++i) {
    path.OnChosen({0, a});
    path.OnChosen({1, after_a});
    path.OnChosen({0, b});
    path.OnChosen({1, after_b});
  }
  path.OnChosen({0, a});
  path.OnChosen({1, after_b});  // once otherwise
  path.OnChosen({0, a});
  const auto guesses = path.Predict(1, 1, {});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(5, 6));
  EXPECT_THAT(ExpectedOf(guesses), ElementsAre(5));
}

TEST(ActivationPathTest, GuessesEndWithWhatExceedsThe75thPercentileOfWhatFollowed) {
  ActivationPath path(kGrid, 1);
  const std::vector<ExpertDemand> before = {{1, 1}};
  for (std::uint32_t expert = 0; expert < kGrid.experts; ++expert) {
    const std::vector<ExpertDemand> after = {{expert, 1}};
    for (std::uint32_t times = 0; times <= expert; ++times) {
      path.OnChosen({0, before});
      path.OnChosen({1, after});
    }
  }
  path.OnChosen({0, before});
  const auto guesses = path.Predict(1, 1, {});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(7, 6));
  EXPECT_THAT(ExpectedOf(guesses), ElementsAre(7));
}

TEST(ActivationPathTest, PathsTellHowOftenEachExpertWasUsed) {
  ActivationPath path(kGrid, 1);
  const std::vector<ExpertDemand> often = {{1, 1}}, seldom = {{2, 1}}, after = {{5, 1}},
                                  last = {{7, 1}};
  for (int token = 0; token < 4; ++token) {
    path.OnChosen({0, token < 3 ? often : seldom});
    path.OnChosen({1, after});
    path.OnChosen({2, last});
  }
  const std::vector<double> uses = UsesIn(path.Seen(), kGrid);
  std::vector<double> expected(kGrid.Count());
  expected[kGrid.Index({0, 1})] = 3;
  expected[kGrid.Index({0, 2})] = 1;
  expected[kGrid.Index({1, 5})] = 4;
  expected[kGrid.Index({2, 7})] = 4;
  EXPECT_EQ(uses, expected);
  const std::vector<SeenPaths> of_another_model = {{.layer = 1, .follows = {1, 2}},
                                                   {.layer = 99, .follows = {}}};
  EXPECT_EQ(UsesIn(of_another_model, kGrid), std::vector<double>(kGrid.Count()));
}

TEST(ActivationPathTest, KnowsNothingAtFirstAndNothingForTheFirstLayer) {
  ActivationPath path(kGrid, 2);
  const std::vector<ExpertDemand> chosen = {{1, 1}};
  path.OnChosen({0, chosen});
  EXPECT_THAT(path.Predict(1, 1, {}), IsEmpty());
  EXPECT_THAT(path.Predict(0, 1, {}), IsEmpty());
}

TEST(ActivationPathTest, BeginsWithWhatWasSeenElsewhere) {
  ActivationPath counted(kGrid, 1);
  const std::vector<ExpertDemand> before = {{1, 1}}, after = {{5, 1}}, other = {{6, 1}};
  for (int i = 0; i < 2; ++i) {
    counted.OnChosen({0, before});
    counted.OnChosen({1, after});
  }
  ASSERT_EQ(counted.Seen().size(), 1u);
  EXPECT_EQ(counted.Seen()[0].layer, 1u);

  const auto path = MakePredictor("eap", kGrid, 1, {.paths = counted.Seen()}).value();
  path->OnChosen({0, before});
  path->OnChosen({1, other});  // once, against twice that it began with
  path->OnChosen({0, before});
  const auto guesses = path->Predict(1, 1, {});
  EXPECT_THAT(ExpertsOf(guesses), ElementsAre(5, 6));

  const std::vector<SeenPaths> of_another_model = {{.layer = 1, .follows = {1, 2}},
                                                   {.layer = 99, .follows = {}}};
  EXPECT_TRUE(ActivationPath(kGrid, 1, of_another_model).Seen().empty());
}

TEST(PreviousTokenTest, GuessesTheLayersLastChoice) {
  PreviousToken previous(kGrid);
  const std::vector<ExpertDemand> first = {{1, 1}, {7, 3}}, second = {{2, 1}};
  previous.OnChosen({1, first});
  previous.OnChosen({2, second});
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), ElementsAre(7, 1));
  EXPECT_THAT(ExpertsOf(previous.Predict(2, 1, {})), ElementsAre(2));
  EXPECT_THAT(previous.Predict(0, 1, {}), IsEmpty());
}

PassFacts PassOf(const std::vector<SequenceId>& sequences) {
  PassFacts pass;
  for (const SequenceId sequence : sequences) {
    pass.groups.push_back({.sequence = sequence, .rows = 1});
  }
  return pass;
}

// Sequences 0 and 1 share a pass; in `layer` the first chooses `first`, the other `second`.
void ChooseTogether(Predictor& predictor, std::uint32_t layer, std::vector<ExpertDemand> first,
                    std::vector<ExpertDemand> second) {
  std::vector<ExpertDemand> all = first;
  for (const ExpertDemand& demand : second) {
    const auto known = std::ranges::find(all, demand.expert, &ExpertDemand::expert);
    if (known == all.end()) {
      all.push_back(demand);
    } else {
      known->tokens += demand.tokens;
    }
  }
  const std::vector<SequenceDemands> split = {{.sequence = 0, .demands = first},
                                              {.sequence = 1, .demands = second}};
  predictor.OnChosen({layer, all, split});
}

TEST(PreviousTokenTest, GuessesForTheSequencesOfThePassAlone) {
  PreviousToken previous(kGrid);
  previous.OnPassBegins(PassOf({0, 1}));
  ChooseTogether(previous, 1, {{1, 1}, {4, 1}}, {{4, 1}, {6, 1}});
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), ElementsAre(4, 1, 6));
  previous.OnPassBegins(PassOf({1}));
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), ElementsAre(4, 6));
  // What the other chose meanwhile takes nothing from the one that waits.
  const std::vector<ExpertDemand> next = {{7, 1}};
  previous.OnChosen({1, next, /*sequence=*/1});
  previous.OnPassBegins(PassOf({0}));
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), ElementsAre(1, 4));
  previous.OnPassBegins(PassOf({0, 1}));
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), UnorderedElementsAre(1, 4, 7));
  previous.OnPassBegins(PassOf({2}));
  EXPECT_THAT(previous.Predict(1, 1, {}), IsEmpty());
}

TEST(PreviousTokenTest, APeersRowsAreNotASequencesHistory) {
  PreviousToken previous(kGrid);
  const std::vector<ExpertDemand> ours = {{1, 1}}, peers = {{2, 1}};
  previous.OnChosen({1, ours});
  previous.OnChosen({1, peers, kNoSequence});
  EXPECT_THAT(ExpertsOf(previous.Predict(1, 1, {})), ElementsAre(1));
}

TEST(ActivationPathTest, OfSequencesThatShareAPassEachFollowsItsOwnPath) {
  ActivationPath path(kGrid, 1);
  for (int i = 0; i < 3; ++i) {
    ChooseTogether(path, 0, {{1, 1}}, {{2, 1}});
    ChooseTogether(path, 1, {{5, 1}}, {{6, 1}});
  }
  const std::vector<ExpertDemand> first = {{1, 1}}, second = {{2, 1}};
  path.OnChosen({0, first});
  EXPECT_THAT(ExpertsOf(path.Predict(1, 1, {})), ElementsAre(5));
  path.OnChosen({0, second, /*sequence=*/1});
  EXPECT_THAT(ExpertsOf(path.Predict(1, 1, {})), ElementsAre(6));
  // Together they are expected to need both.
  ChooseTogether(path, 0, first, second);
  EXPECT_THAT(ExpertsOf(path.Predict(1, 1, {})), UnorderedElementsAre(5, 6));
}

TEST(ActivationPathTest, ASequenceThatWasNotInTheLayerBeforeHasNoPathFromThere) {
  ActivationPath path(kGrid, 1);
  const std::vector<ExpertDemand> before = {{1, 1}}, after = {{5, 1}};
  path.OnChosen({0, before, /*sequence=*/0});
  path.OnChosen({1, after, /*sequence=*/1});
  EXPECT_THAT(path.Seen(), IsEmpty());
}

TEST(OracleTest, GuessesWhatWillBeChosen) {
  const std::vector<ExpertDemand> first = {{1, 1}}, second = {{2, 1}, {3, 4}};
  Oracle oracle({{.layer = 0, .chosen = first}, {.layer = 1, .chosen = second}});
  oracle.OnChosen({0, first});
  EXPECT_THAT(ExpertsOf(oracle.Predict(1, 1, {})), ElementsAre(3, 2));
  EXPECT_THAT(oracle.Predict(2, 1, {}), IsEmpty());
  oracle.OnChosen({1, second});
  EXPECT_THAT(oracle.Predict(2, 1, {}), IsEmpty());
}

TEST(OracleDeathTest, StopsWhenTheRunIsNotTheRecordedOne) {
  const std::vector<ExpertDemand> first = {{1, 1}}, other = {{2, 1}};
  Oracle oracle({{.layer = 0, .chosen = first}});
  EXPECT_DEATH(oracle.OnChosen({0, other}), "next_");
}

TEST(PredictorTest, EachNameMakesThePredictorOfThatName) {
  for (const std::string& name : PredictorNames()) {
    const auto made = MakePredictor(name, kGrid, 2);
    ASSERT_TRUE(made.ok());
    if (name == "none") {
      EXPECT_EQ(*made, nullptr);
    } else if (name != "auto") {
      EXPECT_EQ((*made)->name(), name);
    }
  }
  EXPECT_FALSE(MakePredictor("fortune", kGrid, 2).ok());
}

TEST(PredictorTest, AutoLooksAtTopScoresOnlyWhereOthersAreReplaced) {
  EXPECT_EQ((*MakePredictor("auto", kGrid, 2))->name(), "lookahead");
  EXPECT_EQ((*MakePredictor("auto", kGrid, 2, {.alpha = 0.3}))->name(), "top-score");
}

}  // namespace
}  // namespace troupe
