// The engine's policy of passes under recorded traffic: how long others wait while a prompt is
// read, who starves, and what deadlines bring.
#include "sim/batch_play.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "sim/trace_file.h"

namespace troupe {
namespace {

// As measured of a small model on two processors (docs/design/server.md).
constexpr PassCosts kCosts = {.pass_seconds = 1.2e-3,
                              .row_seconds = 1.0e-3,
                              .expert_seconds = 0.034e-3,
                              .layers = 24,
                              .experts = 60,
                              .top_k = 4};

EngineSetup ASetup() { return {.costs = kCosts, .sequences = 16, .limits = {}}; }

// Conversations in their order and lengths, coming `times` as slowly as they did.
std::vector<PlayedRequest> Conversations(std::size_t count, double times) {
  const std::string path = TROUPE_SOURCE_DIR "/tests/data/serving/azure_conv.csv.zst";
  const Result<std::vector<RecordedRequest>> recorded = ReadRequests(path);
  std::vector<PlayedRequest> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back({.recorded = (*recorded).at(i)});
    requests.back().recorded.seconds *= times;
  }
  return requests;
}

PlayedRequest AnAsk(double seconds, std::uint32_t in, std::uint32_t out,
                    std::optional<double> timeout = {}) {
  return {.recorded = {.seconds = seconds, .input_tokens = in, .output_tokens = out},
          .timeout_s = timeout};
}

TEST(BatchPlay, APassTakesWhatItsRowsAndTheirExpertsTake) {
  const PassCosts costs{.pass_seconds = 1,
                        .row_seconds = 0.1,
                        .expert_seconds = 0.01,
                        .layers = 2,
                        .experts = 4,
                        .top_k = 2};
  EXPECT_DOUBLE_EQ(costs.Seconds(1), 1 + 0.1 + 2 * 2 * 0.01);
  EXPECT_DOUBLE_EQ(costs.Seconds(2), 1 + 0.2 + 2 * 3 * 0.01);
  EXPECT_NEAR(costs.Seconds(100), 1 + 10 + 2 * 4 * 0.01, 1e-9);
}

TEST(BatchPlay, OneRequestTakesItsChunksAndThenAPassAToken) {
  const PlayedRequest ask = AnAsk(5, 600, 4);
  const BatchPlayResult result = PlayBatches({&ask, 1}, ASetup());
  EXPECT_EQ(result.passes, 2u + 3u);  // 512 and 88 tokens, then the second to the fourth token
  EXPECT_EQ(result.answered, 1u);
  const double prompt = kCosts.Seconds(512) + kCosts.Seconds(88);
  EXPECT_NEAR(result.first.mean(), prompt, 1e-9);
  EXPECT_NEAR(result.gap.mean(), kCosts.Seconds(1), 1e-9);
  EXPECT_NEAR(result.seconds, prompt + 3 * kCosts.Seconds(1), 1e-9);
}

TEST(BatchPlay, EveryConversationIsReadAndAnsweredWhole) {
  const std::vector<PlayedRequest> requests = Conversations(500, 20);
  std::uint64_t in = 0, out = 0;
  for (const PlayedRequest& request : requests) {
    in += request.recorded.input_tokens;
    out += request.recorded.output_tokens;
  }
  const BatchPlayResult result = PlayBatches(requests, ASetup());
  EXPECT_EQ(result.answered, requests.size());
  EXPECT_EQ(result.dropped, 0u);
  EXPECT_EQ(result.prompt_tokens, in);
  EXPECT_EQ(result.generated, out);
  EXPECT_EQ(result.first.count(), requests.size());
  EXPECT_EQ(result.gap.count(), out - requests.size());
  EXPECT_EQ(result.rows, in + out - requests.size());
}

// More come than can be answered, so somebody decodes and somebody reads in nearly every pass.
TEST(BatchPlay, NoGapIsMuchLongerThanAPassShouldTakeHoweverLongThePrompts) {
  const std::vector<PlayedRequest> requests = Conversations(500, 1);
  const BatchPlayResult result = PlayBatches(requests, ASetup());
  // The meter has to learn: a chunk that it took for cheap was not. Its curve lies between points.
  EXPECT_LT(result.gap.greatest(), 1.5 * BatchLimits{}.target_seconds);
  EXPECT_LT(result.gap.Quantile(0.99), 1.1 * BatchLimits{}.target_seconds);

  EngineSetup by_tokens = ASetup();
  by_tokens.limits.target_seconds = std::numeric_limits<double>::infinity();
  const BatchPlayResult whole = PlayBatches(requests, by_tokens);
  EXPECT_GT(whole.gap.Quantile(0.99), 2 * result.gap.Quantile(0.99));
}

TEST(BatchPlay, NobodyStarvesBesideAStreamOfMoreUrgentPrompts) {
  // A prompt without a deadline, and then always more urgent ones than can be read.
  std::vector<PlayedRequest> requests = {AnAsk(0, 3000, 2)};
  for (int i = 0; i < 400; ++i) requests.push_back(AnAsk(0.2 * i, 400, 2, 1000));
  EngineSetup setup = ASetup();
  const BatchPlayResult result = PlayBatches(requests, setup);
  EXPECT_EQ(result.answered, requests.size());
  EXPECT_GE(result.most_passed_over, setup.limits.most_passed_over);  // it did have to wait
  EXPECT_LE(result.most_passed_over, setup.limits.most_passed_over + setup.sequences);

  setup.limits.most_passed_over = std::numeric_limits<std::uint32_t>::max();
  EXPECT_GT(PlayBatches(requests, setup).most_passed_over, 2 * result.most_passed_over);
}

TEST(BatchPlay, DecodesOfMoreSequencesThanRowsTakeTurns) {
  std::vector<PlayedRequest> requests;
  for (int i = 0; i < 16; ++i) requests.push_back(AnAsk(0, 4, 50));
  EngineSetup setup = ASetup();
  setup.limits.most_rows = 5;
  const BatchPlayResult result = PlayBatches(requests, setup);
  EXPECT_EQ(result.answered, 16u);
  // Four of 16 in a pass beside a prompt, five without one.
  EXPECT_LT(result.gap.greatest(), 4.01 * result.pass.greatest());
  EXPECT_GT(result.gap.Quantile(0.5), 1.5 * result.pass.Quantile(0.5));
}

TEST(BatchPlay, UrgentRequestsMeetDeadlinesThatTheyWouldMissInOrderOfArrival) {
  std::vector<PlayedRequest> patient, urgent;
  for (int i = 0; i < 12; ++i) patient.push_back(AnAsk(0, 2000, 20));
  urgent = patient;
  for (int i = 0; i < 4; ++i) {
    // Three seconds would read three of the prompts before it.
    patient.push_back(AnAsk(1, 100, 20));
    urgent.push_back(AnAsk(1, 100, 20, 5));
  }
  const BatchPlayResult in_order = PlayBatches(patient, ASetup());
  EXPECT_GT(in_order.first.greatest(), 5);
  const BatchPlayResult result = PlayBatches(urgent, ASetup());
  EXPECT_EQ(result.dropped, 0u);
  EXPECT_EQ(result.answered, 16u);

  for (PlayedRequest& request : urgent) request.timeout_s = 5;  // too much for everybody
  const BatchPlayResult all = PlayBatches(urgent, ASetup());
  EXPECT_GT(all.dropped, 0u);
  EXPECT_EQ(all.answered + all.dropped, 16u);
}

TEST(BatchPlay, IsAFunctionOfItsInput) {
  const std::vector<PlayedRequest> requests = Conversations(100, 5);
  const BatchPlayResult one = PlayBatches(requests, ASetup()),
                        two = PlayBatches(requests, ASetup());
  EXPECT_EQ(one.seconds, two.seconds);
  EXPECT_EQ(one.passes, two.passes);
  EXPECT_EQ(one.gap.Quantile(0.9), two.gap.Quantile(0.9));
  EXPECT_EQ(PlayBatches({}, ASetup()).passes, 0u);
}

}  // namespace
}  // namespace troupe
