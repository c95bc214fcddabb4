// The server from its first client to its last: requests of a connection, what is told of them, and
// how it ends.
#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/http/http_server_for_test.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOtherOnAConnection) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one"));
  EXPECT_THAT(wire.ReadUntil("one"), StartsWith("HTTP/1.1 200 OK\r\n"));
  wire.Say(Get("/echo"));
  EXPECT_THAT(wire.ReadUntil("GET "), HasSubstr("200 OK"));
  EXPECT_EQ(server_->counters().requests, 2u);
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(HttpServerTest, RequestsThatAreSentAheadAreAnsweredInTheirOrder) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one") + Post("/echo", "two") + Post("/echo", "three"));
  EXPECT_THAT(wire.ReadUntil("three"),
              testing::ContainsRegex("POST one(.|\n|\r)*POST two(.|\n|\r)*POST three"));
}

TEST_F(HttpServerTest, APathsEscapesAreDecodedAndItsQueryLeftOut) {
  EXPECT_THAT(Ask(Get("/a%20b?c=d", "Connection: close\r\n")), EndsWith("\r\n\r\n/a b"));
}

TEST_F(HttpServerTest, ABodyMayComeByteByByteAndInChunks) {
  Wire wire = Connect();
  for (const char c : Post("/echo", "slow")) wire.Say({&c, 1});
  EXPECT_THAT(wire.ReadUntil("POST slow"), HasSubstr("200 OK"));
  wire.Say(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(wire.ReadUntil("POST abcde"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhoWaitsToBeAskedForTheBodyIsAsked) {
  Wire wire = Connect();
  wire.Say("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(wire.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  wire.Say("ab");
  EXPECT_THAT(wire.ReadUntil("POST ab"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, WhoWaitsBehindAnAnswerToBeAskedForABodyIsAsked) {
  Wire wire = Connect();
  wire.Say(Get("/stream") +
           "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  wire.ReadUntil("data: 1\n\n");
  Kept()->End();
  EXPECT_THAT(wire.ReadUntil("100 Continue\r\n\r\n"), HasSubstr("HTTP/1.1 100 Continue"));
  wire.Say("ab");
  EXPECT_THAT(wire.ReadUntil("POST ab"), HasSubstr("200 OK"));
  Forget();
}

TEST_F(HttpServerTest, BlankLinesBehindABodyAreNoRequest) {
  Wire wire = Connect();
  wire.Say(Post("/echo", "one") + "\r\n");
  EXPECT_THAT(wire.ReadUntil("POST one"), HasSubstr("200 OK"));
  wire.Say(Post("/echo", "two"));
  EXPECT_THAT(wire.ReadUntil("POST two"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, AHandlerThatForgetsItsReplyIsAnError) {
  EXPECT_THAT(Ask(Get("/forget", "Connection: close\r\n")), StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, EveryRequestThatIsOverIsToldOnce) {
  Wire wire = Connect();
  wire.Say(Post("/echo?key=secret", "one") + Get("/closed"));
  wire.ReadUntil("no key");
  HttpEnded ended = Logged(0);
  EXPECT_THAT(ended.peer, StartsWith("127.0.0.1:"));
  EXPECT_EQ(ended.method + " " + ended.path, "POST /echo");
  EXPECT_EQ(ended.status, 200);
  EXPECT_GT(ended.bytes, 30u);
  EXPECT_EQ(ended.how, HttpEnded::How::kAnswered);
  EXPECT_EQ(Logged(1).status, 401);
  Ask("nonsense\r\n\r\n");
  ended = Logged(2);
  EXPECT_EQ(ended.status, 400);
  EXPECT_EQ(ended.path, "");
  Wire leaves = Connect();
  leaves.Say(Get("/stream"));
  leaves.ReadUntil("data: 1\n\n");
  leaves.Leave();
  ended = Logged(3);
  EXPECT_EQ(ended.path, "/stream");
  EXPECT_EQ(ended.how, HttpEnded::How::kLeft);
  server_.reset();
  const std::lock_guard lock(log_mu_);
  EXPECT_EQ(log_.size(), 4u);
}

TEST_F(HttpServerTest, ANameIsListenedToAtItsAddressOfVersion4WhateverOthersItHas) {
  const auto server =
      HttpServer::Listen({.host = "localhost", .port = 0, .certificate = "", .key = ""},
                         {.handle = [](HttpRequest, HttpReplyPtr reply) { reply->Send({}); }});
  ASSERT_TRUE(server.ok()) << server.status().ToString();
  Wire wire((*server)->port());  // 127.0.0.1
  wire.Say(Get("/", "Connection: close\r\n"));
  EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, APortThatIsTakenIsAnError) {
  const auto second =
      HttpServer::Listen({.port = server_->port(), .certificate = "", .key = ""}, {});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(server_->port())));
}

TEST_F(HttpServerTest, DrainingEndsIdleConnectionsAndWaitsForStreams) {
  Wire idle = Connect();
  idle.Say(Post("/echo", "one"));
  idle.ReadUntil("one");
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  EXPECT_FALSE(server_->Drain(50ms));
  EXPECT_EQ(idle.ReadAll(), "");
  Kept()->Write("data: 2\n\n");
  Kept()->End();
  EXPECT_THAT(streaming.ReadAll(), HasSubstr("data: 2\n\n"));
  Forget();
  EXPECT_TRUE(server_->Drain(20s));
}

TEST_F(HttpServerTest, DrainingAnswersARequestThatHasBegunToCome) {
  Wire wire = Connect();
  wire.Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
  ASSERT_EQ(Ask(Get("/echo", "Connection: close\r\n")).empty(), false);  // what came before is read
  EXPECT_FALSE(server_->Drain(50ms));
  wire.Say("lf");
  EXPECT_THAT(wire.ReadAll(), AllOf(HasSubstr("Connection: close"), EndsWith("POST half")));
  EXPECT_TRUE(server_->Drain(20s));
}

TEST_F(HttpServerTest, RepliesMayOutliveTheServer) {
  Wire wire = Connect();
  wire.Say(Get("/stream"));
  wire.ReadUntil("data: 1\n\n");
  server_.reset();
  EXPECT_FALSE(Kept()->Write("data: 2\n\n"));
  Kept()->End();
  Forget();
}

}  // namespace
}  // namespace troupe
