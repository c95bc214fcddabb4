// Ends of answers: what they take holds up nobody, and before them whoever waits hears something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Whose whole answer is there when a test says so.
class LateFormat final : public AnswerFormat {
 public:
  LateFormat(std::promise<void>& asked, std::future<void> told)
      : asked_(asked), told_(std::move(told)) {}

  std::string Open() override { return {}; }
  std::string Delta(std::size_t, const TextDelta&) override { return {}; }
  std::string Close(std::size_t, const Answer&) override { return {}; }
  std::string Last(std::span<const ChoiceAnswer>) override { return {}; }
  std::string Failure(const Status&) override { return {}; }
  std::string Progress(std::size_t, std::size_t) override { return {}; }
  HttpResponse Whole(std::span<const ChoiceAnswer> choices) override {
    asked_.set_value();
    told_.wait();
    return {.body = choices.front().answer.text};
  }
  HttpResponse Refusal(const Status& status) override { return {.body = status.message()}; }

 private:
  std::promise<void>& asked_;
  std::future<void> told_;
};

class EndsServiceTest : public ServiceTest {
 protected:
  // The engine's thread waits until Go.
  void Halt() {
    Request request{.prompt = "a", .max_tokens = 2, .ignore_end = true};
    std::promise<void> halted;
    bool first = true;
    halting_.emplace(model()
                         .Start(std::move(request), {.on_piece =
                                                         [&, first](const Piece&) mutable {
                                                           if (std::exchange(first, false)) {
                                                             halted.set_value();
                                                             go_.get_future().wait();
                                                           }
                                                           return true;
                                                         }})
                         .value());
    halted.get_future().wait();
  }
  void Go() { go_.set_value(); }
  void TearDown() override {
    halting_.reset();
    ServiceTest::TearDown();
  }

  std::promise<void> go_;
  std::optional<Generation> halting_;
};

TEST_F(EndsServiceTest, TheEngineDoesNotWaitForAnAnswerToBePutTogether) {
  ReloadGate gate(served_);
  std::promise<void> asked, told;
  const auto reply = std::make_shared<FakeReply>();
  Errands errands;
  Request request{.prompt = std::vector<TokenId>{260, 261}, .max_tokens = 3, .ignore_end = true};
  RunTextJob(*gate.Look(), JobRequests::Of(request), {.errands = &errands},
             std::make_unique<LateFormat>(asked, told.get_future()), reply, {});
  asked.get_future().wait();
  const Answer next = model().Start(request)->Wait().value();  // meanwhile
  EXPECT_EQ(next.tokens.size(), 3u);
  EXPECT_EQ(reply->status(), 0);
  EXPECT_EQ(errands.counters().done, 0u);
  told.set_value();
  reply->WaitForEnd();
  errands.Wait();
  EXPECT_EQ(reply->body(), next.text);
  EXPECT_EQ(errands.counters().done, 1u);
  gate.Park({});
  EXPECT_TRUE(gate.WaitUntilUnused(std::chrono::minutes(1)));
}

TEST_F(EndsServiceTest, BeatsAndClientsThatLeaveDoNotWaitForAnAnswerToBePutTogether) {
  ReloadGate gate(served_);
  std::promise<void> asked, told, beaten;
  const auto reply = std::make_shared<FakeReply>();
  Pulse pulse(std::chrono::milliseconds(1));
  Errands errands;
  Request request{.prompt = std::vector<TokenId>{260, 261}, .max_tokens = 3, .ignore_end = true};
  RunTextJob(*gate.Look(), JobRequests::Of(request),
             {.pulse = &pulse, .blanks_after = std::chrono::hours(1), .errands = &errands},
             std::make_unique<LateFormat>(asked, told.get_future()), reply, {});
  asked.get_future().wait();
  pulse.Add([&beaten, beats = 0]() mutable {  // the second beat is behind the job's own
    if (++beats < 2) return true;
    beaten.set_value();
    return false;
  });
  beaten.get_future().wait();
  EXPECT_TRUE(reply->Doubt());
  reply->Leave();
  EXPECT_EQ(reply->status(), 0);
  told.set_value();
  errands.Wait();
  EXPECT_EQ(reply->status(), 200);
  gate.Park({});
  EXPECT_TRUE(gate.WaitUntilUnused(std::chrono::minutes(1)));
}

TEST_F(EndsServiceTest, TheEndsOfAnswersAreCounted) {
  Post("/v1/completions", std::string(kSay) + R"(,"n":3})");
  service_->FinishErrands();
  EXPECT_THAT(Start("GET", "/metrics")->body(), HasSubstr("troupe_answer_ends_total 3\n"));
}

TEST_F(EndsServiceTest, AnAnswerThatIsNotStreamedBeginsWithBlanksWhereItTakesLong) {
  const std::string alone = Post("/v1/completions", std::string(kSay) + "}")->body();
  const Json text = (*Json::Parse(alone)->Find("choices"))[0];
  pulse_ = std::chrono::milliseconds(1);
  Open();
  served_.options.most_silence = std::chrono::milliseconds(1);
  service_->Adopt(served_.options);
  Halt();
  const auto reply = Start("POST", "/v1/completions", std::string(kSay) + "}");
  reply->WaitFor("\n\n");
  EXPECT_EQ(reply->head().content_type, "application/json");
  Go();
  reply->WaitForEnd();
  EXPECT_EQ(reply->broken(), 0);
  EXPECT_EQ((*Json::Parse(reply->body())->Find("choices"))[0].Find("text")->AsString(),
            text.Find("text")->AsString());
}

TEST_F(EndsServiceTest, AnErrorBehindBlanksIsToldAndCutOff) {
  pulse_ = std::chrono::milliseconds(1);
  Open();
  served_.options.most_silence = std::chrono::milliseconds(1);
  service_->Adopt(served_.options);
  Halt();
  const auto reply = Start("POST", "/v1/completions", std::string(kSay) + R"(,"timeout":0.05})");
  reply->WaitFor("\n\n");
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  Go();
  reply->WaitForEnd();
  EXPECT_EQ(reply->broken(), 504);
  EXPECT_THAT(reply->body(), StartsWith("\n\n"));
  EXPECT_EQ(Json::Parse(reply->body())->Find("error")->Find("type")->AsString(), "server_error");
}

TEST_F(EndsServiceTest, AClientWhoWouldTakeAnErrorBehindBlanksForAnAnswerGetsNone) {
  pulse_ = std::chrono::milliseconds(1);
  Open();
  served_.options.most_silence = std::chrono::milliseconds(1);
  service_->Adopt(served_.options);
  Halt();
  const auto reply = std::make_shared<FakeReply>();
  reply->may_break = false;  // HTTP/1.0
  router_->Serve({.method = "POST",
                  .path = "/v1/completions",
                  .body = std::string(kSay) + R"(,"timeout":0.05})"},
                 reply);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_EQ(reply->status(), 0);
  EXPECT_FALSE(reply->Doubt());
  Go();
  reply->WaitForEnd();
  EXPECT_EQ(reply->status(), 504);
  EXPECT_THAT(reply->body(), StartsWith("{"));
}

TEST_F(EndsServiceTest, WhatCanBeRefusedIsRefusedBeforeABlank) {
  pulse_ = std::chrono::milliseconds(1);
  Open();
  served_.options.most_silence = std::chrono::nanoseconds(1);
  service_->Adopt(served_.options);
  served_.start = [](Request, Callbacks) -> Result<Generation> {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // beats come meanwhile
    return InvalidArgument("request: not so");
  };
  const auto reply = Post("/v1/completions", std::string(kSay) + "}");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), StartsWith("{"));
}

TEST_F(EndsServiceTest, WithoutALimitOfSilenceNothingComesBeforeTheEnd) {
  pulse_ = std::chrono::milliseconds(1);
  Open();
  served_.options.most_silence.reset();
  service_->Adopt(served_.options);
  const std::string body =
      Post("/v1/completions", R"({"prompt":"a","max_tokens":80,"ignore_eos":true})")->body();
  EXPECT_THAT(body, StartsWith("{"));
}

}  // namespace
}  // namespace troupe
