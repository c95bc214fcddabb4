#include "troupe/trace_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "expert/prefetch/score_learner.h"
#include "testing/temp_folder.h"
#include "testing/test_seed.h"
#include "trace/trace_writer.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// One dense layer, then two of four experts, of which a token takes two.
ModelConfig TracedModel() {
  ModelConfig config;
  config.layers = 3;
  config.moe.leading_dense = 1;
  config.moe.routing.experts = 4;
  config.moe.routing.top_k = 2;
  return config;
}

struct TracedToken {
  std::uint32_t sequence = 0, position = 0;
  std::vector<std::uint16_t> first = {0, 1}, second = {2, 3};  // what its layers chose
  std::vector<float> scores = {0.5f, 0.5f};                    // in both
  std::vector<float> all = {};                                 // of each layer's experts
  std::uint16_t place = 0;
};

class TraceCalibrationTest : public testing::Test {
 protected:
  TraceReader Recorded(const std::vector<TracedToken>& tokens, bool scored = true) {
    const TraceHeader header{.model = "traced",
                             .layers = 3,
                             .moe_layers = {1, 2},
                             .experts = 4,
                             .top_k = 2,
                             .scores = scored ? ScoreKind::kSoftmax : ScoreKind::kNone,
                             .all_scores = !tokens.empty() && !tokens[0].all.empty(),
                             .sequences = 2};
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder_.PathOf("t.trace")).value(), header).value();
    for (const TracedToken& token : tokens) {
      TraceBlock block{.domains = {""},
                       .segments = {{.sequence = token.sequence,
                                     .position = token.position,
                                     .tokens = 1,
                                     .phase = TracePhase::kDecode,
                                     .place = token.place}},
                       .tokens = 1,
                       .all_scores = token.all};
      for (const auto& ids : {token.first, token.second}) {
        block.ids.insert(block.ids.end(), ids.begin(), ids.end());
        if (scored)
          block.scores.insert(block.scores.end(), token.scores.begin(), token.scores.end());
      }
      EXPECT_TRUE(writer.Append(std::move(block)).ok());
    }
    EXPECT_TRUE(writer.Finish().ok());
    return TraceReader::Open(folder_.PathOf("t.trace")).value();
  }

  static Result<TraceCalibration> Learn(TraceReader reader,
                                        const TraceCalibrationOptions& options = {}) {
    return LearnRoutes(reader, TracedModel(), options);
  }

  TempFolder folder_;
};

// Far enough in their sequence to count in full.
std::vector<TracedToken> TenAlike() {
  std::vector<TracedToken> tokens;
  for (std::uint32_t t = 0; t < 10; ++t) tokens.push_back({.sequence = 4, .position = 20 + t});
  return tokens;
}

TEST_F(TraceCalibrationTest, CountsWhatIsChosenTogetherAndWhatFollowsWhat) {
  const TraceCalibration learned = Learn(Recorded(TenAlike())).value();
  EXPECT_EQ(learned.buddies.tokens, 10u);
  ASSERT_THAT(learned.buddies.layers, SizeIs(2));
  EXPECT_THAT(learned.buddies.layers[0].activations, ElementsAre(10, 10, 0, 0));
  EXPECT_THAT(learned.buddies.layers[1].activations, ElementsAre(0, 0, 10, 10));
  const std::span<const Buddy> with_zero = learned.buddies.buddies.Of({1, 0});
  ASSERT_THAT(with_zero, SizeIs(1));
  EXPECT_EQ(with_zero[0].expert, 1u);
  ASSERT_THAT(learned.profile.paths, SizeIs(1));
  EXPECT_EQ(learned.profile.paths[0].layer, 2u);
  EXPECT_THAT(std::vector<float>(learned.profile.paths[0].follows.begin(),
                                 learned.profile.paths[0].follows.begin() + 4),
              ElementsAre(0, 0, 10, 10));
  EXPECT_THAT(learned.profile.learned, SizeIs(0));
  EXPECT_THAT(learned.profile.forecasts, SizeIs(0));
}

TEST_F(TraceCalibrationTest, TellsHowOftenRoutesForetoldThemselvesBeforeItLearnedFromThem) {
  const TraceCalibration learned = Learn(Recorded(TenAlike())).value();
  EXPECT_DOUBLE_EQ(learned.foresight.by_paths, 0.9);  // the first token found none
  EXPECT_DOUBLE_EQ(learned.foresight.by_previous, 1);
  std::vector<TracedToken> other = TenAlike();
  for (TracedToken& token : other) {
    if (token.position % 2 == 1) token.first = {2, 3}, token.second = {0, 1};
  }
  const TraceCalibration turns = Learn(Recorded(other)).value();
  EXPECT_DOUBLE_EQ(turns.foresight.by_paths, 0.8);  // each of the two paths was new once
  EXPECT_DOUBLE_EQ(turns.foresight.by_previous, 0);
}

TEST_F(TraceCalibrationTest, AnotherSequencesTokenIsNoneBefore) {
  const TraceCalibration learned =
      Learn(Recorded({{.sequence = 0, .position = 7},
                      {.sequence = 1, .position = 8, .first = {2, 3}},
                      {.sequence = 1, .position = 9, .first = {2, 3}}}))
          .value();
  EXPECT_DOUBLE_EQ(learned.foresight.by_previous, 1);
}

TEST_F(TraceCalibrationTest, TakesHowEvenlyTokensSpreadTheirWeightFromScores) {
  std::vector<TracedToken> tokens = TenAlike();
  const auto median = [](TraceReader reader) {
    return Learn(std::move(reader)).value().buddies.EntropyAt(50)[1];
  };
  constexpr double kStep = 1.0 / 1024;  // of the histogram
  EXPECT_NEAR(median(Recorded(tokens)), 1, kStep);
  EXPECT_EQ(median(Recorded(tokens, /*scored=*/false)), 0) << "no gate: nothing is known";
  for (TracedToken& token : tokens) token.scores = {0.8f, 0.2f};  // 0.7219 bits
  EXPECT_NEAR(median(Recorded(tokens)), 0.7219, kStep);
}

TEST_F(TraceCalibrationTest, ReplaysTheRoutesWithEachNumberOfFirstLayersKept) {
  const TraceCalibration learned = Learn(Recorded(TenAlike())).value();
  ASSERT_THAT(learned.profile.shallow, SizeIs(6));
  const ProfiledShare& half = learned.profile.shallow[3];
  EXPECT_EQ(half.share, 0.5);  // four slots, and four experts that are ever used
  ASSERT_FALSE(half.costs.empty());
  EXPECT_DOUBLE_EQ(half.costs[0].misses, 0.4);
  EXPECT_NEAR(half.costs[0].uncovered, 0.22, 1e-9);  // paths cover 0.9 of the second layer's
}

// Two texts that take turns, of one of which some tokens are missing.
std::vector<TracedToken> TwoScoredTexts() {
  Rng rng(TestSeed());
  std::vector<TracedToken> tokens;
  for (std::uint32_t t = 0; t < 120; ++t) {
    const auto text = static_cast<std::uint16_t>(rng.Below(2));
    const auto before = std::ranges::count(tokens, text, &TracedToken::place);
    TracedToken token{.sequence = 7u + text, .position = static_cast<std::uint32_t>(before)};
    if (text == 1 && before >= 20) token.position += 5;
    token.place = text;
    for (int i = 0; i < 8; ++i) token.all.push_back(static_cast<float>(rng.Uniform()));
    for (auto* ids : {&token.first, &token.second}) {
      const std::uint64_t one = rng.Below(4), other = (one + 1 + rng.Below(3)) % 4;
      *ids = {static_cast<std::uint16_t>(one), static_cast<std::uint16_t>(other)};
    }
    tokens.push_back(token);
  }
  return tokens;
}

void FeedTraced(const TracedToken& token, std::uint32_t position, std::span<const EarlyGate> gates,
                ScoreLearner& learner) {
  learner.TokenBegins(position, token.place);
  const std::span<const float> all = token.all;
  const std::vector<std::uint32_t> first(token.first.begin(), token.first.end());
  const std::vector<std::uint32_t> second(token.second.begin(), token.second.end());
  learner.OnLayer(1, all.first(4), first, gates);
  learner.OnLayer(2, all.last(4), second, {});
}

constexpr ExpertGrid kTracedGrid{.layers = 3, .experts = 4};

TEST_F(TraceCalibrationTest, TablesOfScoresAreThoseOfEachTextsTokensInTurn) {
  const std::vector<TracedToken> tokens = TwoScoredTexts();
  const TraceCalibration learned = Learn(Recorded(tokens), {.buddies = {}, .scores = true}).value();
  ASSERT_TRUE(learned.scores.has_value());
  ScoreLearner as_meant(kTracedGrid, 2, 1), without_a_gap(kTracedGrid, 2, 1);
  for (const TracedToken& token : tokens) {
    const bool behind_the_gap = token.place == 1 && token.position == 25;
    FeedTraced(token, behind_the_gap ? 0 : token.position, {}, as_meant);
    FeedTraced(token, token.position, {}, without_a_gap);
  }
  EXPECT_EQ(*learned.scores, std::move(as_meant).Learned());
  EXPECT_NE(*learned.scores, std::move(without_a_gap).Learned());
  EXPECT_GT(learned.scores->tokens, 100u);
  EXPECT_FALSE(Learn(Recorded(tokens)).value().scores.has_value());
}

TEST_F(TraceCalibrationTest, LeavesTablesAloneThatKnowWhatGatesSayEarly) {
  const std::string path = folder_.PathOf("m.scores");
  const std::string fingerprint(32, 'a');
  const ScoreTablesOf of = TablesOfModel(TracedModel(), fingerprint);
  EXPECT_TRUE(CheckTablesReplaceable(path, of).ok());
  for (const bool gates_too : {false, true}) {
    ScoreLearner learner(kTracedGrid, 2, 1);
    for (const TracedToken& token : TwoScoredTexts()) {
      const EarlyGate gate{.layer = 2, .ahead = 1, .scores = std::span(token.all).last(4)};
      FeedTraced(token, token.position, std::span(&gate, gates_too ? 1u : 0u), learner);
    }
    ASSERT_TRUE(SaveScoreTables(std::move(learner).Learned(), fingerprint, path).ok());
    const Status replaceable = CheckTablesReplaceable(path, of);
    EXPECT_EQ(replaceable.ok(), !gates_too);
    if (gates_too) {
      EXPECT_THAT(replaceable.message(), HasSubstr("was learned from a text"));
    }
  }
  // Of another model: of no use here.
  EXPECT_TRUE(
      CheckTablesReplaceable(path, TablesOfModel(TracedModel(), std::string(32, 'b'))).ok());
}

TEST_F(TraceCalibrationTest, TakesNoMoreTokensThanAsked) {
  EXPECT_EQ(Learn(Recorded(TenAlike()), {.buddies = {}, .most_tokens = 3}).value().profile.tokens,
            3u);
}

TEST_F(TraceCalibrationTest, SaysWhatATraceLacks) {
  EXPECT_THAT(Learn(Recorded({})).status().message(), HasSubstr("no tokens to learn from"));
  EXPECT_THAT(Learn(Recorded(TenAlike(), /*scored=*/false), {.buddies = {.weighted = true}})
                  .status()
                  .message(),
              HasSubstr("t.trace: has no scores, by which --weighted counts"));
}

TEST_F(TraceCalibrationTest, LeavesAProfileAloneThatCorrectsForecasts) {
  const std::string path = folder_.PathOf("m.profile.json");
  EXPECT_TRUE(CheckReplaceable(path).ok());
  ModelProfile profile{.fingerprint = "00ff", .text = "t", .tokens = 1, .layers = 2, .experts = 2};
  ASSERT_TRUE(SaveProfile(profile, path).ok());
  EXPECT_TRUE(CheckReplaceable(path).ok());
  profile.learned = {{.layer = 1,
                      .ahead = 1,
                      .table = std::vector<float>(LearnedForecast::TableSize(2)),
                      .offset = {0, 0}}};
  ASSERT_TRUE(SaveProfile(profile, path).ok());
  EXPECT_THAT(CheckReplaceable(path).message(), HasSubstr("was learned from a text"));
}

}  // namespace
}  // namespace troupe
