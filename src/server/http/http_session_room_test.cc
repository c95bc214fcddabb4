// Requests that hold memory which others need: they go, and answers before them do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "server/http/http_session_for_test.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::StartsWith;

class HttpSessionRoomTest : public HttpSessionTest {
 protected:
  void SetUp() override {
    limits_.body_start = std::chrono::milliseconds(0);
    HttpSessionTest::SetUp();
  }
  void ComeInPieces(std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      wire_->Come(bytes.substr(0, kPiece));
    }
  }
  bool all_is_free() const { return memory_->left() == std::size_t{1} << 20; }
  static std::string Announced(std::size_t bytes) {
    return "POST /two HTTP/1.1\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  }

  static constexpr std::size_t kPiece = 1000;
};

TEST_F(HttpSessionRoomTest, AWholeRequestThatWaitsBehindAnAnswerGivesItsRoomToOthers) {
  wire_->Come(Get("/one"));
  EXPECT_EQ(session_->Pace(), std::nullopt);
  ComeInPieces(Announced(20'000) + std::string(20'000, 'x'));
  EXPECT_FALSE(all_is_free());
  EXPECT_TRUE(session_->HoldsRoom());
  EXPECT_EQ(session_->Pace(), 0.0);
  session_->GiveWay();
  EXPECT_TRUE(all_is_free());
  EXPECT_EQ(session_->Pace(), std::nullopt);
  replies_[0]->Send({.body = "one"});
  RunPosted();
  EXPECT_THAT(wire_->Send(), EndsWith("one"));
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 503 "));
  EXPECT_TRUE(wire_->lingers);
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(HttpSessionRoomTest, WhatHasGivenWayBehindAnAnswerTakesNoMoreRoom) {
  wire_->Come(Get("/one"));
  ComeInPieces(Announced(200'000) + std::string(20'000, 'x'));
  session_->GiveWay();
  ComeInPieces(std::string(kPiece, 'x'));  // a read was under way
  EXPECT_FALSE(wire_->reads());
  EXPECT_TRUE(all_is_free());
  replies_[0]->Send({.body = "one"});
  RunPosted();
  EXPECT_THAT(wire_->Send(), EndsWith("one"));
  RunPosted();
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpSessionRoomTest, AHeaderThatHoldsRoomGoesWithItsConnectionButNotWithAnAnswer) {
  ComeInPieces("GET /" + std::string(9'000, 'a'));
  EXPECT_TRUE(session_->HoldsRoom());
  session_->GiveWay();
  EXPECT_TRUE(wire_->closed && all_is_free());
  wire_ = std::make_shared<FakeWire>();
  SetUp();
  wire_->Come(Get("/one"));
  ComeInPieces("GET /" + std::string(9'000, 'a'));
  session_->GiveWay();
  EXPECT_FALSE(wire_->closed);
  replies_.back()->Send({.body = "one"});
  RunPosted();
  EXPECT_THAT(wire_->Send(), EndsWith("one"));
}

TEST_F(HttpSessionRoomTest, ALongHeadHoldsRoomUntilItsRequestIsOver) {
  ComeInPieces("GET / HTTP/1.1\r\nA: " + std::string(9'000, 'a') + "\r\nContent-Length: 2\r\n\r\n");
  EXPECT_TRUE(session_->HoldsRoom());
  EXPECT_LE(memory_->left(), (std::size_t{1} << 20) - 18'000);
  wire_->Come("ab");
  EXPECT_FALSE(all_is_free());
  requests_.clear();
  EXPECT_TRUE(all_is_free());
}

TEST_F(HttpSessionRoomTest, WhoIsAskedForABodyAndGivesWayBeforeThatIsNotReadOn) {
  wire_->Come("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9000\r\n\r\n");
  ASSERT_TRUE(wire_->writes());
  session_->GiveWay();
  wire_->Send();
  RunPosted();
  EXPECT_FALSE(wire_->reads());
  EXPECT_THAT(wire_->Send(), StartsWith("HTTP/1.1 408 "));
}

}  // namespace
}  // namespace troupe
