#include "server/parked_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/fake_reply_for_test.h"
#include "server/service_paths.h"
#include "server/sse.h"

namespace troupe {
namespace {

constexpr const char* kBeat = ": the model is being loaded\n\n";

class ParkedReplyTest : public testing::Test {
 protected:
  void WaitAs(std::string_view endpoint) {
    reply_.WaitAs(
        MakeWaitingStream(endpoint, [] { return OpenAiHead{.id = "resp_9", .model = "m"}; }));
  }

  const std::shared_ptr<FakeReply> inner_ = std::make_shared<FakeReply>();
  ParkedReply reply_{inner_};
};

TEST_F(ParkedReplyTest, WithoutABeatItIsTheReplyThatItIsAround) {
  WaitAs(kChat);
  reply_.Send({.status = 400, .body = "{}"});
  EXPECT_EQ(inner_->status(), 400);
  EXPECT_EQ(inner_->body(), "{}");
  EXPECT_FALSE(reply_.Wait());
}

TEST_F(ParkedReplyTest, WhoAskedForNoStreamWaitsInSilence) {
  EXPECT_FALSE(reply_.Wait());
  EXPECT_EQ(inner_->status(), 0);
}

TEST_F(ParkedReplyTest, BeatsBeginAStreamThatTheAnswerGoesOnWith) {
  WaitAs(kChat);
  EXPECT_TRUE(reply_.Wait());
  EXPECT_TRUE(reply_.Wait());
  EXPECT_EQ(inner_->status(), 200);
  EXPECT_EQ(inner_->head().content_type, kEventStream);
  reply_.Begin(StreamHead());
  EXPECT_FALSE(reply_.Wait());
  reply_.Write("data: 1\n\n");
  reply_.End();
  EXPECT_EQ(inner_->body(), std::string(kBeat) + kBeat + "data: 1\n\n");
}

TEST_F(ParkedReplyTest, NoBeatComesBehindTheLastNumberThatTheAnswerKnows) {
  WaitAs(kResponses);
  EXPECT_TRUE(reply_.Wait());
  const ToldWaiting told = reply_.TakeOver();
  EXPECT_EQ(told.events, 2u);
  EXPECT_EQ(told.head.id, "resp_9");
  const std::string said = inner_->body();
  EXPECT_FALSE(reply_.Wait());
  EXPECT_EQ(inner_->body(), said);
}

TEST_F(ParkedReplyTest, AnAnswerThatComesBeforeTheFirstBeatBeginsByItself) {
  WaitAs(kResponses);
  EXPECT_EQ(reply_.TakeOver().events, 0u);
  EXPECT_FALSE(reply_.Wait());
  EXPECT_EQ(inner_->status(), 0);
}

TEST_F(ParkedReplyTest, AnErrorIsTheLastEventOfAStreamThatHasBegun) {
  WaitAs(kMessages);
  reply_.Wait();
  const std::string said = inner_->body();
  reply_.Send({.status = 400, .body = "{}"});
  EXPECT_EQ(inner_->status(), 200);
  EXPECT_EQ(inner_->body(), said + "event: error\ndata: {}\n\n");
  inner_->WaitForEnd();
}

TEST_F(ParkedReplyTest, NobodyIsToldWhoHasLeft) {
  WaitAs(kChat);
  inner_->Leave();
  EXPECT_FALSE(reply_.Wait());
}

}  // namespace
}  // namespace troupe
