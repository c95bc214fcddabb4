#include "server/http/http_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "server/http/http_session_for_test.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

TEST_F(HttpSessionTest, EachPartOfARequestHasATimeOfItsOwn) {
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.header_time);  // not long for who has asked nothing yet
  wire_->Come("POST / HTTP/1.1\r\n");
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.header_time);
  wire_->Come("Content-Length: 2\r\n\r\n");
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.body_time);
  wire_->Come("ab");
  EXPECT_EQ(requests_.at(0).body, "ab");
  EXPECT_EQ(wire_->TimeOf(kRead), 0ms);  // whoever waits for an answer may be silent
  replies_[0]->Send({.body = "{}"});
  RunPosted();
  EXPECT_EQ(wire_->TimeOf(kWrite), limits_.write_time);
  EXPECT_THAT(wire_->Send(), EndsWith("\r\n\r\n{}"));
  EXPECT_EQ(wire_->TimeOf(kWrite), 0ms);
  EXPECT_EQ(wire_->TimeOf(kRead), limits_.idle_time);
}

TEST_F(HttpSessionTest, ARequestThatIsNotWholeInItsTimeIsToldSoAndASilentOneIsClosed) {
  wire_->Come("GET /");
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_EQ(timed_out_, 1);
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(wire_->lingers);
  EXPECT_FALSE(wire_->closed);
  wire_->RunOut(kRead);  // it need not linger for ever
  EXPECT_TRUE(wire_->closed);
  wire_ = std::make_shared<FakeWire>();
  SetUp();
  wire_->RunOut(kRead);
  EXPECT_TRUE(wire_->closed);
  EXPECT_EQ(timed_out_, 1);
}

TEST_F(HttpSessionTest, ABodyMayTakeAsLongAsItWantsWhileEnoughOfItComes) {
  limits_.body_progress = 3;
  wire_->Come("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n");
  for (const char* part : {"abc", "defg"}) {
    wire_->Come(part);
    wire_->RunOut(kRead);
    EXPECT_EQ(wire_->TimeOf(kRead), limits_.body_time);
    EXPECT_EQ(timed_out_, 0);
  }
  wire_->Come("hi");  // too little for its time
  wire_->RunOut(kRead);
  RunPosted();
  EXPECT_EQ(timed_out_, 1);
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpSessionTest, OneRequestIsReadAheadAndNoMore) {
  wire_->Come(Get("/one"));
  wire_->Come(Get("/two") + Get("/three"));
  EXPECT_EQ(requests_.size(), 1u);
  EXPECT_FALSE(wire_->reads());
  replies_[0]->Send({});
  RunPosted();
  wire_->Send();
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].path, "/two");
}

TEST_F(HttpSessionTest, WhatIsNoRequestBehindOneIsRefusedAfterItsAnswer) {
  wire_->Come(Get("/one"));
  wire_->Come("nonsense\r\n\r\n");
  EXPECT_EQ(malformed_, 1);
  EXPECT_TRUE(wire_->writing.empty());
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 200 "));
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, ARefusalOfABodyIsSentBeforeTheBodyIsRead) {
  wire_->Come("POST /closed HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("401"));
  EXPECT_TRUE(requests_.empty());
  EXPECT_FALSE(wire_->reads());
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, AWriteGoesOnWhileTheClientTakesAnyOfIt) {
  wire_->Come(Get("/"));
  replies_[0]->Send({.body = std::string(100'000, 'x')});
  RunPosted();
  for (int i = 0; i < 10; ++i) {
    wire_->delivered += 1;
    wire_->RunOut(kWrite);
    EXPECT_FALSE(wire_->closed);
  }
  wire_->RunOut(kWrite);
  EXPECT_EQ(too_slow_, 1);
  EXPECT_TRUE(wire_->closed);
}

TEST_F(HttpSessionTest, AWriteThatTakesTooLongLetsTheClientGo) {
  wire_->Come(Get("/"));
  replies_[0]->Begin({});
  RunPosted();
  wire_->RunOut(kWrite);
  EXPECT_EQ(too_slow_, 1);
  EXPECT_TRUE(wire_->closed);
  EXPECT_FALSE(replies_[0]->Write("more"));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].how, HttpEnded::How::kTooSlow);
  EXPECT_EQ(log_[0].peer, "1.2.3.4:5");
}

TEST_F(HttpSessionTest, AClientThatLeavesBeforeItsAnswerIsNoticed) {
  wire_->Come(Get("/"));
  bool gone = false;
  replies_[0]->WhenGone([&] { gone = true; });
  wire_->Close();
  EXPECT_TRUE(gone);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].how, HttpEnded::How::kLeft);
}

TEST_F(HttpSessionTest, AClientThatLeavesWithARequestAheadIsNoticed) {
  for (const char* ahead : {"GET /two HTTP/1.1\r\n\r\nGET /three", "nonsense\r\n\r\n",
                            "POST /closed HTTP/1.1\r\nContent-Length: 9\r\n\r\n"}) {
    SCOPED_TRACE(ahead);
    TearDown();
    wire_ = std::make_shared<FakeWire>();
    SetUp();
    wire_->Come(Get("/one"));
    bool gone = false;
    replies_.back()->WhenGone([&] { gone = true; });
    wire_->Come(ahead);
    ASSERT_FALSE(wire_->reads());
    wire_->RunOut(kRead);
    EXPECT_FALSE(gone);
    wire_->has_left = true;
    wire_->RunOut(kRead);
    EXPECT_TRUE(gone);
    EXPECT_TRUE(wire_->closed);
  }
}

TEST_F(HttpSessionTest, ADrainClosesIdleConnectionsAndOthersAfterTheirAnswer) {
  wire_->Come(Get("/"));
  draining_ = true;
  session_->OnDrain();
  EXPECT_FALSE(wire_->closed);
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
  session_->Close();
  wire_ = std::make_shared<FakeWire>();
  SetUp();
  session_->OnDrain();
  EXPECT_TRUE(wire_->closed);
}

TEST_F(HttpSessionTest, ADrainLetsARequestThatHasBegunComeToItsEnd) {
  wire_->Come("POST / HTTP/1.1\r\nContent-");
  draining_ = true;
  session_->OnDrain();
  EXPECT_FALSE(wire_->closed);
  wire_->Come("Length: 2\r\n\r\nab");
  ASSERT_EQ(requests_.size(), 1u);
  session_->OnDrain();
  replies_[0]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, ADrainLetsARequestThatHasBegunBehindAnAnswerComeToItsEnd) {
  wire_->Come(Get("/one"));
  replies_[0]->Begin({});
  wire_->Come("GET /two HTTP/1.1\r\n");
  draining_ = true;
  session_->OnDrain();
  replies_[0]->End();
  RunPosted();
  while (wire_->writes()) wire_->Send();
  EXPECT_FALSE(wire_->lingers);
  wire_->Come("\r\n");
  ASSERT_EQ(requests_.size(), 2u);
  replies_[1]->Send({});
  RunPosted();
  EXPECT_THAT(wire_->Send(), HasSubstr("Connection: close"));
  EXPECT_TRUE(wire_->lingers);
}

TEST_F(HttpSessionTest, BytesThatFindNoMemoryAreAnsweredBeforeTheConnectionCloses) {
  ASSERT_TRUE(memory_->Take(memory_->left()));
  wire_->Come("GET /" + std::string(5000, 'a'));
  RunPosted();
  EXPECT_EQ(no_room_, 1);
  EXPECT_FALSE(wire_->closed);
  EXPECT_THAT(wire_->Send(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1")));
  EXPECT_TRUE(wire_->lingers);
  memory_->Give(1 << 20);
}

TEST_F(HttpSessionTest, BytesThatFindNoMemoryBehindARequestDoNotCostItsAnswer) {
  wire_->Come(Get("/one"));
  ASSERT_TRUE(memory_->Take(memory_->left()));
  wire_->Come("GET /" + std::string(5000, 'a'));
  EXPECT_EQ(no_room_, 1);
  EXPECT_FALSE(wire_->reads() || wire_->closed);
  replies_[0]->Send({.body = "one"});
  RunPosted();
  EXPECT_THAT(wire_->Send(), AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("one")));
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 503 "));
  memory_->Give(1 << 20);
}

TEST_F(HttpSessionTest, AnAnswerForWhichOthersLeaveNoRoomIsA503AndTheConnectionGoesOn) {
  wire_->Come(Get("/one"));
  replies_[0]->Send({.body = std::string(2 << 20, 'x')});
  RunPosted();
  EXPECT_EQ(turned_away_, 1);
  EXPECT_THAT(wire_->Send(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1"),
                                   HasSubstr("keep-alive")));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].status, 503);
  wire_->Come(Get("/two"));
  EXPECT_EQ(requests_.size(), 2u);
}

TEST_F(HttpSessionTest, IsIdleOnlyWhileNoRequestIsKnownOrAnswered) {
  const auto at_first = session_->IdleSince();
  EXPECT_TRUE(at_first.has_value());
  wire_->Come("POST / HTTP/1.1\r\n");
  EXPECT_EQ(session_->IdleSince(), at_first);  // bytes that make no request buy no time
  wire_->Come("Content-Length: 2\r\n\r\n");
  EXPECT_FALSE(session_->IdleSince().has_value());
  wire_->Come("ab");
  EXPECT_FALSE(session_->IdleSince().has_value());
  replies_[0]->Send({});
  RunPosted();
  wire_->Send();
  EXPECT_GT(session_->IdleSince(), at_first);
}

TEST_F(HttpSessionTest, OnlyRefusalsThatEndTheConnectionCountAsThat) {
  wire_->Come(Get("/closed"));
  RunPosted();
  wire_->Send();
  EXPECT_EQ(refused_, 0);
  wire_->Come("POST /closed HTTP/1.1\r\nContent-Length: 9\r\n\r\n");
  RunPosted();
  wire_->Send();
  EXPECT_EQ(refused_, 1);
  EXPECT_TRUE(wire_->lingers);
}

}  // namespace
}  // namespace troupe
