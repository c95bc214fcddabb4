#include "troupe/trace_calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_folder.h"
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
};

class TraceCalibrationTest : public testing::Test {
 protected:
  TraceReader Recorded(const std::vector<TracedToken>& tokens, bool scored = true) {
    const TraceHeader header{.model = "traced",
                             .layers = 3,
                             .moe_layers = {1, 2},
                             .experts = 4,
                             .top_k = 2,
                             .scores = scored ? ScoreKind::kSoftmax : ScoreKind::kNone};
    TraceWriter writer =
        TraceWriter::Create(WholeFile(folder_.PathOf("t.trace")).value(), header).value();
    for (const TracedToken& token : tokens) {
      TraceBlock block{.domains = {""},
                       .segments = {{.sequence = token.sequence,
                                     .position = token.position,
                                     .tokens = 1,
                                     .phase = TracePhase::kDecode}},
                       .tokens = 1};
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
