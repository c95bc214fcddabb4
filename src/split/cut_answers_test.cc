// Prompts that an end and its cloud (end_and_cloud_for_test.h) cut between them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "split/end_and_cloud_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr std::size_t kCutTokens = 96;

class CutAnswersTest : public EndAndCloudTest {
 protected:
  void OpenCuttingCloud(std::size_t cut_tokens = kCutTokens) {
    OpenCloud({.cut_tokens = cut_tokens});
  }
  void OpenCuttingEnd(std::string rule, CutOptions cuts = {.tokens = kCutTokens, .layer = 3}) {
    OpenEnd({.rule = std::move(rule), .explain = true, .cuts = std::move(cuts)});
    WaitFor(CloudWatch::State::kThere);
  }
  static Request Asking(std::uint64_t seed, std::size_t tokens = 1) {
    Request request =
        Ask("The kernel is the part that the rest of it leans on, and the one that "
            "nobody sees until it is gone",
            tokens, seed);
    request.ignore_end = true;
    return request;
  }
};

TEST_F(CutAnswersTest, TheEndHasTheFirstLayersAndTheCloudTheOthersAndTheBytesAreTheSame) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers");
  std::vector<Generation> under_way;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    under_way.push_back(end_->Start(Asking(seed), {}).value());
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const Answer answer = under_way[seed].Wait().value();
    const Answer alone = Alone(Asking(seed));
    EXPECT_EQ(answer.tokens, alone.tokens);
    EXPECT_EQ(answer.text, alone.text);
    EXPECT_EQ(answer.finish, alone.finish);
  }
  const EndState state = end_->State();
  ASSERT_TRUE(state.cuts);
  EXPECT_GT(state.cuts->counts.answered, 0u);
  EXPECT_GT(state.cuts->counts.rows, 20u);
  EXPECT_EQ(state.cuts->counts.lossy_rows, 0u);
  ASSERT_EQ(state.cuts->counts.rows_before.size(), 1u);
  EXPECT_EQ(state.cuts->counts.rows_before.begin()->second, state.cuts->counts.rows);
  EXPECT_GT(state.cuts->counts.end.seconds(), 0);
  EXPECT_GE(state.busy_seconds[0], 0.99 * state.cuts->counts.end.seconds())
      << "the end is at work while it computes its layers";
  EXPECT_GT(state.cuts->counts.cloud.seconds(), 0);
  EXPECT_GT(state.cuts->seconds, 0);
  EXPECT_EQ(state.cuts->under_way, 0u);
  EXPECT_EQ(state.flow.tokens[1], 12u) << "the cloud's";
  EXPECT_GT(served_.cuts->counters().rows, 20u);
  EXPECT_THAT(said(),
              HasSubstr("begins at the cloud behind layers of the end: cut before layer 3"));
  EXPECT_THAT(said(), HasSubstr("the end computed"));
}

TEST_F(CutAnswersTest, LongerAnswersGoOnInTheCloudBehindTheEndsLayersAndTheBytesAreTheSame) {
  OpenCuttingCloud();
  std::uint64_t went_on = 0, keys_bytes = 0;
  for (const std::uint32_t layer : {1U, 3U, 7U}) {
    OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = layer});
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      Request request = Asking(seed, 12);
      request.sampling.temperature = seed % 2 == 0 ? 0 : 1;
      const Answer answer = end_->Start(request, {})->Wait().value();
      const Answer alone = Alone(request);
      EXPECT_EQ(answer.tokens, alone.tokens) << "seed " << seed << ", layer " << layer;
      EXPECT_EQ(answer.text, alone.text);
      EXPECT_EQ(answer.finish, alone.finish);
    }
    const EndState state = end_->State();
    went_on += state.cuts->counts.went_on;
    keys_bytes += state.cuts->counts.keys_bytes;
    EXPECT_EQ(state.flow.failures, 0u);
    end_->Close();
    end_.reset();
  }
  // Answers may move to the end, which is quicker here by what was measured last.
  EXPECT_GT(went_on, 0u);
  EXPECT_GT(keys_bytes, 0u);
  const CutHost::WentOn in_cloud = served_.cuts->went_on();
  EXPECT_GT(in_cloud.kept, 0u);
  EXPECT_EQ(in_cloud.no_room + in_cloud.given_up, 0u) << "the pool has room for all";
  EXPECT_GT(ModelAccess::CountersOf(*served_.model).cached_tokens, 0u)
      << "the model reads the rest alone";
  EXPECT_EQ(LeftWaiting(*served_.cuts), Bytes());
  EXPECT_THAT(said(), HasSubstr("to its first token"));
}

TEST_F(CutAnswersTest, AnAnswerWithARuleGoesOnBehindACutAsWell) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers");
  Request request = Asking(4, 30);
  request.ignore_end = false;
  request.rule = AnswerRule{.kind = AnswerRule::Kind::kGrammar, .text = "root ::= [a-f]+"};
  EXPECT_EQ(end_->Start(request, {})->Wait()->text, Alone(request).text);
  EXPECT_EQ(end_->State().cuts->counts.went_on, 1u);
}

TEST_F(CutAnswersTest, ManyLongerAnswersAtOnceAreTheModelsAlone) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 4, .chunk = 16});
  std::vector<Generation> under_way;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    under_way.push_back(end_->Start(Asking(seed, 1 + seed), {}).value());
  }
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(under_way[seed].Wait()->tokens, Alone(Asking(seed, 1 + seed)).tokens);
  }
}

TEST_F(CutAnswersTest, AutoTriesCutsAndThenKnowsWhatTheyTake) {
  OpenCuttingCloud();
  OpenCuttingEnd("auto", {.tokens = kCutTokens});
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    EXPECT_EQ(end_->Start(Asking(seed), {})->Wait()->tokens, Alone(Asking(seed)).tokens);
  }
  EXPECT_GT(end_->State().cuts->counts.begun, 0u);
  EXPECT_GT(end_->State().cuts->bytes_a_second, 0);
}

TEST_F(CutAnswersTest, ACloudThatIsKilledInMidPromptCostsNoByte) {
  for (int round = 0; round < 4; ++round) {
    OpenCuttingCloud();
    OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 5, .chunk = 4});
    std::vector<Generation> under_way;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      under_way.push_back(end_->Start(Asking(seed, 1 + 4 * (seed % 3)), {}).value());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * round));
    CloseCloud();
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      EXPECT_EQ(under_way[seed].Wait()->tokens, Alone(Asking(seed, 1 + 4 * (seed % 3))).tokens);
    }
    end_->Close();
    end_.reset();
  }
}

TEST_F(CutAnswersTest, ACutOutsideOfTheModelIsToldInALineAndTheEndServesOn) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 8});
  EXPECT_THAT(said(), HasSubstr("no prompts are cut by layers: a cut before layer 8, 1 to 7"));
  EXPECT_FALSE(end_->cuts_lose());
  EXPECT_EQ(end_->Start(Asking(1), {})->Wait()->tokens, Alone(Asking(1)).tokens);
  EXPECT_FALSE(end_->State().cuts);
}

TEST_F(CutAnswersTest, ARankLargerThanTheWidthIsToldInALine) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 3, .code = {.rank = 1 << 16}});
  EXPECT_THAT(said(), HasSubstr("no prompts are cut by layers: "));
  EXPECT_EQ(end_->Start(Asking(1), {})->Wait()->tokens, Alone(Asking(1)).tokens);
}

TEST_F(CutAnswersTest, ACloudWithAnotherBasisIsToldInALineOnceAndTheEndAnswersAlone) {
  OpenCuttingCloud();
  CutBasis fitted;
  fitted.layer = 3;
  fitted.width = static_cast<std::uint32_t>(ModelAccess::EngineOf(*model_).config().width);
  fitted.kept = {1};
  OpenCuttingEnd(
      "layers",
      {.tokens = kCutTokens, .layer = 3, .code = {.form = StateForm::kInt8}, .bases = {fitted}});
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    EXPECT_EQ(end_->Start(Asking(seed), {})->Wait()->tokens, Alone(Asking(seed)).tokens);
  }
  EXPECT_EQ(end_->State().cuts->counts.answered, 0u);
  EXPECT_THAT(said(), HasSubstr("no prompts are cut for now: not in the cloud: "));
}

TEST_F(CutAnswersTest, ACloudThatTakesNoneIsAskedForWholeAnswers) {
  OpenCloud();
  OpenCuttingEnd("layers");
  EXPECT_EQ(end_->Start(Asking(1), {})->Wait()->tokens, Alone(Asking(1)).tokens);
  EXPECT_EQ(end_->State().cuts->counts.begun, 0u);
  EXPECT_THAT(said(), HasSubstr("no prompts are cut by layers: the cloud takes none"));
}

TEST_F(CutAnswersTest, LossyRowsAreCountedAndRequestsThatWantExactnessOrALimitHaveNone) {
  OpenCuttingCloud();
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 3, .code = {.form = StateForm::kInt8}});
  Request exact = Asking(2);
  exact.exact = true;
  EXPECT_EQ(end_->Start(exact, {})->Wait()->tokens, Alone(exact).tokens);
  EXPECT_EQ(end_->State().cuts->counts.lossy_rows, 0u);
  Request limited = Asking(2);
  limited.most_loss = 0.05;
  EXPECT_EQ(end_->Start(limited, {})->Wait()->tokens, Alone(exact).tokens);
  EXPECT_EQ(end_->State().cuts->counts.lossy_rows, 0u) << "nobody knows what the code loses";
  EXPECT_TRUE(end_->Start(Asking(2), {})->Wait().ok());
  const EndState state = end_->State();
  EXPECT_GT(state.cuts->counts.lossy_rows, 0u);
  EXPECT_GT(state.cuts->counts.rows, state.cuts->counts.lossy_rows);
}

TEST_F(CutAnswersTest, AnEntropyCoderSparesBytesAndChangesNoAnswer) {
  OpenCuttingCloud();
  std::vector<std::vector<TokenId>> tokens[2];
  CutCounts counts[2];
  for (const std::size_t coder : {0, 1}) {
    OpenCuttingEnd("layers", {.tokens = kCutTokens,
                              .layer = 3,
                              .chunk = kCutTokens,
                              .code = {.form = StateForm::kInt4, .rans = coder == 1}});
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      tokens[coder].push_back(end_->Start(Asking(seed), {})->Wait()->tokens);
    }
    counts[coder] = end_->State().cuts->counts;
    EXPECT_EQ(counts[coder].answered, 5u);
  }
  EXPECT_EQ(tokens[1], tokens[0]);
  EXPECT_EQ(counts[1].lossy_rows, counts[0].lossy_rows);
  EXPECT_EQ(counts[0].bytes_spared, 0u);
  EXPECT_GT(counts[1].bytes_spared, 0u);
  EXPECT_EQ(counts[1].bytes + counts[1].bytes_spared, counts[0].bytes);
}

TEST_F(CutAnswersTest, OfLossesByTheLinkAnEndSaysWhereNoCutThatItMakesHasACode) {
  OpenCuttingCloud();
  const std::vector<TriedCode> int8 = {{.code = {.form = StateForm::kInt8}, .row_bytes = 100}};
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 3, .by_link = {{2, int8}}});
  EXPECT_THAT(said(), HasSubstr("rows of cut prompts cross exactly: "));
  EXPECT_FALSE(end_->cuts_lose()) << "the code is another layer's";
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 2, .by_link = {{2, int8}}});
  EXPECT_TRUE(end_->cuts_lose());
  OpenCuttingEnd("layers", {.tokens = kCutTokens, .layer = 3, .code = {.form = StateForm::kInt8}});
  EXPECT_TRUE(end_->cuts_lose());
}

}  // namespace
}  // namespace troupe
