// Whole answers of an end and its cloud (end_and_cloud_for_test.h).
#include "split/end_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "split/end_and_cloud_for_test.h"
#include "split/own_costs.h"
#include "split/wire/cloud_line.h"
#include "testing/temp_folder.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

// An answer of n tokens, whatever they are.
Request Say(std::string prompt, std::size_t tokens, std::uint64_t seed = 1) {
  Request request = Ask(std::move(prompt), tokens, seed);
  request.ignore_end = true;
  return request;
}

using EndAnswersTest = EndAndCloudTest;

TEST_F(EndAnswersTest, TheCloudChoosesTheTokensAndTheBytesAreTheSame) {
  OpenCloud();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  const Answer alone = Alone(Say("The kernel", 40));
  std::string streamed;
  Generation generation = end_->Start(Say("The kernel", 40), {.on_piece =
                                                                  [&](const Piece& piece) {
                                                                    streamed += piece.text;
                                                                    return true;
                                                                  }})
                              .value();
  const Answer answer = generation.Wait().value();
  EXPECT_EQ(answer.tokens, alone.tokens);
  EXPECT_EQ(answer.text, alone.text);
  EXPECT_EQ(streamed, alone.text);
  const EndState state = end_->State();
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{0, 1}));
  EXPECT_EQ(state.flow.tokens, (std::array<std::uint64_t, 2>{0, 40}));
  EXPECT_GT(state.bytes_received, 40u);
  EXPECT_GT(state.busy_seconds[1], 0);
  EXPECT_EQ(state.busy_seconds[0], 0);
  EXPECT_GT(state.idle_seconds[0], 0);
  EXPECT_THAT(said(), HasSubstr("the cloud is there"));
}

TEST_F(EndAnswersTest, WhatTheEndTellsOfItsTokensIsMeasuredThoughABatteryWeighsThem) {
  TempFolder machine;
  const auto write = [&machine](const std::string& path, const std::string& text) {
    const std::filesystem::path whole = machine.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  };
  write("/proc/meminfo", "MemAvailable:    8192 kB\n");
  write("/sys/class/power_supply/BAT0/type", "Battery\n");
  write("/sys/class/power_supply/BAT0/capacity", "5\n");
  write("/sys/class/power_supply/BAT0/status", "Discharging\n");
  OpenCloud();
  OpenEnd({.rule = "end", .device = DeviceWatch::Options{.root = machine.path().string()}});
  ASSERT_TRUE(end_->Start(Say("The kernel", 40), {})->Wait().ok());
  const auto is_as_measured = [this](const EndState& state) {
    const auto measured =
        OwnCostsOf(ModelAccess::CountersOf(*model_), model_->plan(), 1, {.exact_only = true});
    return state.end && state.end->token_seconds == measured->token_seconds;
  };
  for (int i = 0; !end_->State().device || !is_as_measured(end_->State()); ++i) {  // told by ticks
    ASSERT_LT(i, 3000);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(end_->State().device->share.power, 0.1);
}

TEST_F(EndAnswersTest, TheEndGuessesAheadOfTheCloudAndTheBytesAreTheSame) {
  OpenCloud();
  OpenEnd({.rule = "drafts", .explain = true});
  WaitFor(CloudWatch::State::kThere);
  std::vector<Generation> under_way;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    under_way.push_back(end_->Start(Say("The kernel", 80, seed), {}).value());
  }
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(under_way[seed].Wait()->tokens, Alone(Say("The kernel", 80, seed)).tokens);
  }
  for (int i = 0; end_->State().drafts.guessed < 10; ++i) {
    ASSERT_LT(i, 500);
    EXPECT_TRUE(end_->Start(Say("The kernel", 80), {})->Wait().ok());
  }
  EXPECT_EQ(end_->State().flow.tokens[0], 0u) << "a guess is no token of an answer";
  EXPECT_GT(end_->State().busy_seconds[0], 0) << "and is work";
  EXPECT_THAT(said(), HasSubstr("begins at the cloud with drafts of the end: as it was told"));
}

// A cloud that says what a test wants.
class ScriptedCloudTest : public EndAndCloudTest {
 protected:
  void Listen() {
    server_ = HttpServer::Listen(
                  {.port = 0, .certificate = "", .key = ""},
                  {.handle = [this](const HttpRequest& request,
                                    const HttpReplyPtr& reply) { Answer(request, reply); }})
                  .value();
  }

  void AnswerHellos() {
    const MutexLock lock(kept_mu_);
    for (const HttpReplyPtr& reply : std::exchange(hellos_, {})) SayHello(reply);
  }

  // To each answer that was asked for, behind lines_.
  void WriteToAll(std::string_view line) {
    const MutexLock lock(kept_mu_);
    for (const HttpReplyPtr& reply : kept_) reply->Write(line);
  }

  std::atomic<bool> keeps_hellos_ = false;  // until AnswerHellos
  std::atomic<int> kept_hellos_ = 0;
  std::atomic<int> hellos_asked_ = 0;
  std::atomic<int> busy_hellos_ = 0;  // how many more hellos it refuses
  std::atomic<bool> busy_ = false;    // as its load is told
  std::atomic<int> asked_ = 0;        // for answers
  std::string lines_;                 // of each of them, which then stays open
  std::atomic<std::uint32_t> context_ = 96;

 private:
  void Answer(const HttpRequest& request, const HttpReplyPtr& reply) {
    if (request.path == "/split/hello") {
      ++hellos_asked_;
      if (busy_hellos_-- > 0) return reply->Send({.status = 503, .body = "{}"});
      if (!keeps_hellos_) return SayHello(reply);
      const MutexLock lock(kept_mu_);
      hellos_.push_back(reply);
      ++kept_hellos_;
      return;
    }
    reply->Begin({});
    reply->Write(lines_);
    const MutexLock lock(kept_mu_);
    kept_.push_back(reply);
    ++asked_;  // last: whoever waits for it writes to those kept
  }

  void SayHello(const HttpReplyPtr& reply) {
    const CloudLoad load{.under_way = busy_ ? 1000U : 0U,
                         .answer_seconds = 1,
                         .read_seconds = 1e-9,
                         .token_seconds = 1e-9};
    reply->Send({.body = Encode(CloudHello{
                     .proof = kSameModel, .context = context_, .sequences = 8, .load = load})});
  }

  Mutex kept_mu_;
  std::vector<HttpReplyPtr> kept_ TROUPE_GUARDED_BY(kept_mu_), hellos_ TROUPE_GUARDED_BY(kept_mu_);
};

TEST_F(ScriptedCloudTest, AnAnswerThatWaitsInTheCloudMovesToTheEndAtOnce) {
  lines_ = Encode(CloudWait{.seconds = 30});
  Listen();
  const troupe::Answer alone = Alone(Say("The kernel", 40));  // measures this machine, too
  OpenEnd({.rule = "auto", .explain = true});
  WaitFor(CloudWatch::State::kThere);
  EXPECT_EQ(end_->Start(Say("The kernel", 40), {})->Wait()->tokens, alone.tokens);
  EXPECT_GE(asked_, 1) << "it was expected to end there sooner";
  const EndState state = end_->State();
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{0, 1}));
  EXPECT_EQ(state.flow.moved, (std::array<std::uint64_t, 2>{1, 0}));
  EXPECT_EQ(state.flow.tokens, (std::array<std::uint64_t, 2>{40, 0}));
  EXPECT_EQ(state.flow.silences, 0u) << "it was not silent";
  EXPECT_EQ(state.predicted[1].answers, 0u) << "nothing is learned of one that moved";
  EXPECT_THAT(said(), HasSubstr("an answer moves to the end behind 0 tokens: cloud "));
}

TEST_F(ScriptedCloudTest, AnAnswerLeavesACloudWhoseTokensTakeLongerThanItSays) {
  const troupe::Answer alone = Alone(Say("The kernel", 60));
  Listen();
  constexpr Nanos kHour = 3'600'000'000'000;
  OpenEnd({.rule = "auto",
           .limits = {.silence = kHour, .least_stall = kHour, .unmeasured_stall = kHour},
           .explain = true});
  WaitFor(CloudWatch::State::kThere);
  Generation generation = end_->Start(Say("The kernel", 60), {}).value();
  while (asked_ == 0) std::this_thread::sleep_for(1ms);
  for (std::size_t i = 0; end_->State().under_way > 0; ++i) {
    // Whoever asks once more wants other tokens than the next of these.
    WriteToAll(i < 50 && asked_ == 1 ? EncodeTokens(std::span(alone.tokens).subspan(i, 1))
                                     : EncodeTokens({}));
    std::this_thread::sleep_for(40ms);
  }
  EXPECT_EQ(generation.Wait()->tokens, alone.tokens);
  const EndState state = end_->State();
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{0, 1}));
  EXPECT_GE(state.flow.tokens[1], 17u) << "it takes some to find out";
  EXPECT_GT(state.flow.tokens[0], 10u);
  EXPECT_EQ(state.flow.failures + state.flow.silences + state.flow.stalls, 0u);
  EXPECT_THAT(said(), HasSubstr("an answer goes on at the end as well behind "));
}

TEST_F(ScriptedCloudTest, SaysWhyAnAnswerGoesOnAtTheEndBehindTokensOfTheCloud) {
  const troupe::Answer alone = Alone(Say("The kernel", 40));
  lines_ = EncodeTokens(std::span(alone.tokens).first(7));
  Listen();
  OpenEnd({.rule = "cloud", .limits = {.silence = 1'000'000'000}, .explain = true});
  WaitFor(CloudWatch::State::kThere);
  EXPECT_EQ(end_->Start(Say("The kernel", 40), {})->Wait()->tokens, alone.tokens);
  EXPECT_THAT(said(), HasSubstr("an answer begins at the cloud: as it was told\n"));
  EXPECT_THAT(said(), HasSubstr("an answer goes on at the end behind 7 tokens: the cloud was "
                                "silent for "));
}

TEST_F(ScriptedCloudTest, ACloudThatLivesAndGivesNoTokensIsAskedForNoMoreAnswersForAWhile) {
  const troupe::Answer alone = Alone(Say("The kernel", 4));
  Listen();
  constexpr Nanos kHour = 3'600'000'000'000, kStall = 300'000'000;
  OpenEnd({.rule = "cloud",
           .limits = {.silence = kHour, .least_stall = kStall, .unmeasured_stall = kStall},
           .explain = true});
  WaitFor(CloudWatch::State::kThere);
  EXPECT_EQ(end_->Start(Say("The kernel", 4), {})->Wait()->tokens, alone.tokens);
  EXPECT_THAT(said(), HasSubstr("an answer goes on at the end behind 0 tokens: the cloud gave no "
                                "token for "));
  EXPECT_EQ(end_->State().flow.stalls, 1u);
  EXPECT_EQ(end_->State().flow.silences, 0u);
  EXPECT_EQ(end_->Start(Say("The kernel", 4), {})->Wait()->tokens, alone.tokens);
  EXPECT_EQ(end_->State().begun, (std::array<std::uint64_t, 2>{1, 1}));
}

TEST_F(ScriptedCloudTest, WhatDoesNotFitIntoItsContextIsNotSentThere) {
  context_ = 48;
  Listen();
  OpenEnd({.rule = "cloud", .explain = true});
  WaitFor(CloudWatch::State::kThere);
  const Request request{.prompt = std::vector<TokenId>(48, 5), .max_tokens = 8};
  EXPECT_TRUE(end_->Start(request, {})->Wait().ok());
  EXPECT_EQ(asked_, 0);
  const EndState state = end_->State();
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{1, 0}));
  EXPECT_EQ(state.flow.failures + state.flow.refusals, 0u);
  EXPECT_THAT(said(), HasSubstr("begins at the end: it does not fit into the cloud's context"));
}

TEST_F(ScriptedCloudTest, AnAnswerThatWaitsAtTheEndMovesToACloudThatHasBecomeFree) {
  const troupe::Answer alone = Alone(Say("The kernel", 40));
  lines_ = EncodeTokens(alone.tokens) + Encode(CloudEnd{.reason = alone.finish});
  busy_ = true;
  Listen();
  OpenEnd({.rule = "auto"});
  WaitFor(CloudWatch::State::kThere);
  std::promise<void> moved;
  ModelAccess::Between(*model_, [until = moved.get_future().share()] { until.wait(); });
  std::vector<Generation> under_way;  // two have the sequences
  for (int i = 0; i < 3; ++i) under_way.push_back(end_->Start(Say("The kernel", 40), {}).value());
  while (end_->State().begun[0] + end_->State().begun[1] < 3) std::this_thread::sleep_for(1ms);
  busy_ = false;
  EXPECT_EQ(under_way[2].Wait()->tokens, alone.tokens) << "though the engine stands still";
  moved.set_value();
  for (const std::size_t i : {0, 1}) EXPECT_EQ(under_way[i].Wait()->tokens, alone.tokens);
  const EndState state = end_->State();
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{3, 0}));
  EXPECT_EQ(state.flow.moved[1], 2u) << "the first one is being read, as far as is known";
  EXPECT_GE(state.flow.tokens[1], 40u);
}

TEST_F(EndAnswersTest, AnEndWhoseCloudIsThereMeasuresItselfOnceAndNobodyWasAnswered) {
  OpenCloud();
  OpenEnd({.rule = "auto"});
  WaitFor(CloudWatch::State::kThere);
  for (int i = 0; !end_->State().end || model_->metrics().generated_tokens < 12; ++i) {
    ASSERT_LT(i, 3000);
    std::this_thread::sleep_for(10ms);
  }
  std::this_thread::sleep_for(200ms);  // it is there again and again
  const EndState state = end_->State();
  EXPECT_EQ(model_->metrics().generated_tokens, 12u) << "three texts (self_measure_test.cc)";
  EXPECT_EQ(state.flow.tokens, (std::array<std::uint64_t, 2>{}));
  EXPECT_EQ(state.begun, (std::array<std::uint64_t, 2>{}));
}

TEST_F(ScriptedCloudTest, AnEndThatWasClosedMeasuresNothingWhenItsCloudSaysHello) {
  keeps_hellos_ = true;
  Listen();
  OpenEnd({.rule = "auto"});
  while (kept_hellos_ == 0) std::this_thread::sleep_for(1ms);
  end_->Close();
  AnswerHellos();
  for (int i = 0; i < 300 && end_->State().cloud != CloudWatch::State::kThere; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(end_->State().cloud, CloudWatch::State::kThere);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(model_->metrics().generated_tokens, 0u) << "nobody would wait for its end";
}

// An end alone looks four times a second at what its engine has to do, and asks the cloud then: the
// measurement leaves before it looks again.
TEST_F(ScriptedCloudTest, AMeasurementLeavesForARequestThatIsTheModelsOwn) {
  std::promise<void> goes_on;
  ModelAccess::Between(*model_, [until = goes_on.get_future().share()] { until.wait(); });
  Listen();
  OpenEnd({.rule = "auto"});
  WaitFor(CloudWatch::State::kThere);  // and the measurement has begun
  for (const int asked = hellos_asked_; hellos_asked_ == asked;) std::this_thread::sleep_for(1ms);
  Generation vectors = end_->Start({.prompt = "a", .embed = Pooling::kMean}, {}).value();
  std::this_thread::sleep_for(150ms);
  goes_on.set_value();
  EXPECT_TRUE(vectors.Wait().ok());
  for (int i = 0; model_->metrics().requests_cancelled == 0; ++i) {
    ASSERT_LT(i, 300);
    std::this_thread::sleep_for(10ms);
  }
}

TEST_F(ScriptedCloudTest, ACloudThatOpensItsModelStillIsAskedAgain) {
  busy_hellos_ = 1;
  Listen();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  EXPECT_LT(busy_hellos_, 0) << "it was asked twice";
}

TEST_F(EndAnswersTest, AnEndThatWasToldThePlaceMeasuresNothing) {
  OpenCloud();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(model_->metrics().generated_tokens, 0u);
}

// An end and a cloud that were both measured before they met.
class MeasuredEndTest : public EndAndCloudTest {
 protected:
  void SetUp() override {
    EndAndCloudTest::SetUp();
    OpenCloud();
    (void)served_.model->Start(Say("The kernel", 20))->Wait();
    (void)Alone(Say("The kernel", 20));
    OpenEnd({.rule = "auto"});
    WaitFor(CloudWatch::State::kThere);
  }
};

TEST_F(MeasuredEndTest, SaysOfAnswersWhatTheyWereExpectedToTakeAndTook) {
  std::uint64_t predicted = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_TRUE(end_->Start(Say("The kernel", 20, seed), {})->Wait().ok());
    const EndState state = end_->State();
    predicted = state.predicted[0].answers + state.predicted[1].answers;
    for (const PredictedSums& sums : state.predicted) {
      EXPECT_EQ(sums.answers > 0, sums.seconds > 0);
    }
  }
  EXPECT_GT(predicted, 0u);
}

TEST_F(EndAnswersTest, WithoutACloudTheEndAnswersAlone) {
  OpenEnd({.cloud = {.url = ParseHttpUrl("http://127.0.0.1:9").value(), .key = ""}});
  WaitFor(CloudWatch::State::kAway);
  EXPECT_EQ(end_->Start(Say("The kernel", 20), {})->Wait()->text,
            Alone(Say("The kernel", 20)).text);
  EXPECT_EQ(end_->State().flow.tokens, (std::array<std::uint64_t, 2>{20, 0}));
  EXPECT_THAT(said(), HasSubstr("serving alone"));
}

TEST_F(MeasuredEndTest, SaysWhatItCostsThatTheCloudIsAway) {
  CloseCloud();
  WaitFor(CloudWatch::State::kAway);
  EXPECT_THAT(said(), testing::ContainsRegex("serving alone, as the cloud is away: .*; "
                                             "[0-9.]+ ms a token here in place of [0-9.]+ ms\n"));
}

TEST_F(EndAnswersTest, ACloudThatIsKilledInMidAnswerAndComesBackCostsNoByte) {
  OpenCloud();
  const auto port = static_cast<std::uint16_t>(ParseHttpUrl(server_->Address())->port);
  OpenEnd({.rule = "cloud", .limits = {.silence = 300'000'000, .first_again = 1'000'000}});
  for (int round = 0; round < 5; ++round) {
    WaitFor(CloudWatch::State::kThere);
    const Request request = Say("The kernel", 80, static_cast<std::uint64_t>(round));
    const Answer alone = Alone(request);
    std::atomic<std::size_t> tokens = 0;
    Generation generation = end_->Start(request, {.on_piece =
                                                      [&](const Piece& piece) {
                                                        tokens = piece.tokens;
                                                        std::this_thread::sleep_for(2ms);
                                                        return true;
                                                      }})
                                .value();
    while (tokens < 5 && !generation.done()) std::this_thread::sleep_for(1ms);
    CloseCloud();
    OpenCloud({.port = port});
    EXPECT_EQ(generation.Wait()->tokens, alone.tokens);
    EXPECT_EQ(generation.Wait()->text, alone.text);
  }
  EXPECT_GT(end_->State().flow.tokens[1], 0u);
}

TEST_F(EndAnswersTest, RefusesNoUserForACloudWithAnotherModelOrAKeyThatItDoesNotTake) {
  OpenCloud({.keys = {"secret"}});
  OpenEnd({.cloud = {.url = ParseHttpUrl(server_->Address()).value(), .key = "wrong"}});
  WaitFor(CloudWatch::State::kRefused);
  EXPECT_THAT(said(), HasSubstr("serving alone: the cloud does not take the key\n"));
  EXPECT_EQ(end_->Start(Say("The kernel", 8), {})->Wait()->tokens.size(), 8u);
  end_.reset();
  OpenEnd({.cloud = {.url = ParseHttpUrl(server_->Address()).value(), .key = "secret"},
           .proof = {.model = {9, 9}, .arithmetic = 3}});
  WaitFor(CloudWatch::State::kRefused);
  EXPECT_THAT(said(), HasSubstr("the cloud has another model"));
  EXPECT_EQ(end_->Start(Say("The kernel", 8), {})->Wait()->tokens.size(), 8u);
}

TEST_F(EndAnswersTest, AServerThatIsNoCloudForEndsIsTold) {
  OpenCloud();
  served_.for_ends.reset();
  OpenEnd();
  WaitFor(CloudWatch::State::kRefused);
  EXPECT_THAT(said(), HasSubstr("--for-ends"));
}

TEST_F(EndAnswersTest, ClosingEndsAnswersInBothPlaces) {
  OpenCloud();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  std::vector<Generation> under_way;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    under_way.push_back(end_->Start(Say("The kernel", 90, seed), {}).value());
  }
  end_->Close();
  for (Generation& generation : under_way) EXPECT_TRUE(generation.done());
  EXPECT_EQ(end_->Start(Say("a", 5), {}).status().code(), Code::kFailedPrecondition);
}

TEST_F(EndAnswersTest, RefusesMoreThanMayWaitAndWhatCanNeverBeAnswered) {
  OpenCloud();
  OpenEnd({.most_answers = 1});
  const auto first = end_->Start(Say("The kernel", 90), {});
  const Status full = end_->Start(Say("a", 5), {}).status();
  EXPECT_EQ(full.code(), Code::kUnavailable);
  EXPECT_GT(full.retry_after(), 0);
  end_.reset();
  OpenEnd();
  EXPECT_EQ(end_->Start({.prompt = std::vector<TokenId>(97, 5)}, {}).status().code(),
            Code::kResourceExhausted);
  EXPECT_EQ(end_->Start({.prompt = "a", .sampling = {.temperature = -1}}, {}).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(end_->Start({.prompt = std::vector<TokenId>{1 << 30}}, {}).status().code(),
            Code::kInvalidArgument);
}

TEST_F(EndAnswersTest, RequestsThatWantLogitsOrVectorsAreTheModelsOwn) {
  OpenCloud();
  OpenEnd({.rule = "cloud"});
  WaitFor(CloudWatch::State::kThere);
  std::size_t logits = 0;
  const auto count = [&](TokenId, std::span<const float>) {
    ++logits;
    return OkStatus();
  };
  EXPECT_TRUE(end_->Start(Say("The kernel", 4), {.on_logits = count})->Wait().ok());
  EXPECT_EQ(logits, 4u);
  EXPECT_FALSE(
      end_->Start({.prompt = "a", .embed = Pooling::kMean}, {})->Wait()->embedding.empty());
  EXPECT_EQ(end_->State().begun, (std::array<std::uint64_t, 2>{0, 0}));
}

}  // namespace
}  // namespace troupe
