// Many clients at once: whose body waits for whose, and who finds no room.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http_server_for_test.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(HttpServerTest, ARequestWithoutABodyDoesNotWaitForThoseWithOne) {
  Wire slow = Connect();
  slow.Say(Post("/wait", "until it is told"));
  waiting_.get_future().wait();
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  told_.set_value();
  EXPECT_THAT(slow.ReadUntil("told"), EndsWith("told"));
}

TEST_F(HttpServerTest, ASmallBodyDoesNotWaitForALargeOne) {
  Wire slow = Connect();
  slow.Say(Post("/wait", std::string(kSmallBodyBytes + 1, 'x')));
  waiting_.get_future().wait();
  Wire quick = Connect();
  const std::string small(kSmallBodyBytes, 'y');
  quick.Say(Post("/echo", small));
  EXPECT_THAT(quick.ReadUntil(small), EndsWith("POST " + small));
  EXPECT_EQ(server_->counters().overtook, 1u);
  told_.set_value();
  EXPECT_THAT(slow.ReadUntil("told"), EndsWith("told"));
  quick.Say(Post("/echo", "z"));
  EXPECT_THAT(quick.ReadUntil("POST z"), EndsWith("POST z"));
}

TEST_F(HttpServerTest, LargeBodiesAreHandledOneAtATime) {
  std::vector<Wire> wires;
  for (int i = 0; i < 8; ++i) {
    wires.push_back(Connect());
    wires.back().Say(Post("/count", std::string(kSmallBodyBytes + 1, 'x')));
  }
  for (Wire& wire : wires) EXPECT_THAT(wire.ReadUntil("counted"), EndsWith("counted"));
  EXPECT_EQ(most_at_once_, 1);
}

TEST_F(HttpServerTest, BodiesThatFindNoMemoryAreToldToComeAgain) {
  Open({.all_body_bytes = 120'000});
  Wire holds = Connect();  // the first half, of which the rest does not come
  holds.Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n" +
            std::string(10'000, 'x'));
  ASSERT_NE(Ask(Get("/echo", "Connection: close\r\n")), "");  // what came before is read
  const std::string large = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n";
  ASSERT_TRUE(Happens([&] {
    const std::string answer = Ask(large);
    return answer.starts_with("HTTP/1.1 503 ") && answer.find("Retry-After: 1") != answer.npos;
  }));
  EXPECT_GT(server_->counters().no_room, 0u);
  holds.Say(std::string(10'000, 'x'));
  EXPECT_THAT(holds.ReadUntil("HTTP/1.1 200 OK"), EndsWith("200 OK"));
}

TEST_F(HttpServerTest, BodiesThatAreOnlyAnnouncedTakeNothingFromAnybody) {
  Open({.body_bytes = 100'000, .all_body_bytes = 250'000, .all_unread_bytes = 200'000});
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  std::vector<Wire> announcing;
  for (int i = 0; i < 300; ++i) {
    announcing.push_back(Connect());
    announcing.back().Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  }
  ASSERT_TRUE(Happens([&] { return server_->counters().connections == 301; }));
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  Wire posting = Connect();
  const std::string body(80'000, 'y');
  posting.Say(Post("/echo", body));
  EXPECT_THAT(posting.ReadUntil("POST " + body), StartsWith("HTTP/1.1 200 OK"));
  Kept()->Write("data: 2\n\n");
  EXPECT_THAT(streaming.ReadUntil("data: 2\n\n"), EndsWith("data: 2\n\n"));
  EXPECT_EQ(server_->counters().too_slow, 0u);
  EXPECT_EQ(server_->counters().no_room, 0u);
  Kept()->End();
  Forget();
  announcing.back().Say(std::string(100'000, 'z'));
  EXPECT_THAT(announcing.back().ReadUntil("zzz"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, BodiesOfUnknownLengthFindNoMoreMemoryThanOthers) {
  Open({.all_body_bytes = 200'000});
  Wire wire = Connect();
  wire.Say("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 30; ++i) wire.Say("2710\r\n" + std::string(10'000, 'x') + "\r\n");
  EXPECT_THAT(wire.ReadAll(), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, MoreClientsThanItTakesWaitWhileAllOthersAreAnswered) {
  Open({.connections = 1});
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  Wire waits = Connect();
  waits.Say(Post("/echo", "waits"));
  for (int i = 0; i < 100; ++i) {
    Kept()->Write("data: 2\n\n");
    streaming.ReadUntil("data: 2\n\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(server_->counters().accepted, 1u);
  Kept()->End();
  Forget();
  EXPECT_THAT(waits.ReadUntil("waits"), HasSubstr("200 OK"));
}

TEST_F(HttpServerTest, BeyondAsManyAsItTakesWhoIsIdleLongestMakesWay) {
  Open({.connections = 3});
  Wire silent = Connect();
  ASSERT_TRUE(Happens([&] { return server_->counters().accepted == 1; }));
  Wire idle = Connect(), asks = Connect();
  for (Wire* const wire : {&idle, &asks, &asks}) {
    wire->Say(Post("/echo", "a"));
    wire->ReadUntil("POST a");
  }
  EXPECT_EQ(server_->counters().made_way, 0u);
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  EXPECT_EQ(silent.ReadAll(), "");
  EXPECT_EQ(server_->counters().made_way, 1u);
  for (Wire* const wire : {&idle, &asks}) {
    wire->Say(Post("/echo", "b"));
    EXPECT_THAT(wire->ReadUntil("POST b"), HasSubstr("200 OK"));
  }
}

TEST_F(HttpServerTest, SilentConnectionsLockNobodyOut) {
  Open({.connections = 20});
  std::vector<Wire> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(Connect());
    if (i % 20 == 0) {
      EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
    }
  }
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  EXPECT_LE(server_->counters().connections, 21u);
}

TEST_F(HttpServerTest, ConnectionsWhoseBodiesDoNotComeLockNobodyOut) {
  Open({.connections = 20, .body_start = std::chrono::milliseconds(10)});
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  std::vector<Wire> announcing;
  for (int i = 0; i < 60; ++i) {
    announcing.push_back(Connect());
    announcing.back().Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  }
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  EXPECT_GT(server_->counters().made_way, 0u);
  Kept()->Write("data: 2\n\n");
  EXPECT_THAT(streaming.ReadUntil("data: 2\n\n"), EndsWith("data: 2\n\n"));
  Kept()->End();
  Forget();
}

TEST_F(HttpServerTest, WhoHasBegunARequestAndMakesWayIsToldWhy) {
  for (const std::string_view begun :
       {"POST /echo HTTP/1.1\r\nHos",
        "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nbody"}) {
    Open({.connections = 1, .body_start = std::chrono::milliseconds(1)});
    Wire slow = Connect();
    slow.Say(begun);
    ASSERT_TRUE(Happens([&] { return server_->counters().accepted == 1; }));
    EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
    EXPECT_THAT(slow.ReadAll(), AllOf(HasSubstr("408"), HasSubstr("waited for its connection"),
                                      HasSubstr("Retry-After: 1")));
    EXPECT_EQ(server_->counters().made_way, 1u);
  }
}

TEST_F(HttpServerTest, WhereManyMakeWayAtOnceTheLastGoWithoutAWord) {
  constexpr std::size_t kTaken = 20, kTold = 16;
  Open({.connections = kTaken, .body_start = std::chrono::milliseconds(1)});
  std::vector<Wire> slow;
  for (std::size_t i = 0; i < 3 * kTaken;
       ++i) {  // within the moment for which those who are told stay
    slow.push_back(Connect());
    slow.back().Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
    ASSERT_TRUE(Happens([&] { return server_->counters().accepted == slow.size(); }));
  }
  EXPECT_GT(server_->counters().made_way, kTold);
  EXPECT_TRUE(Happens([&] { return server_->counters().connections <= kTaken + kTold; }));
}

TEST_F(HttpServerTest, BodiesThatWaitBehindAnswersTakeNoRoomFromThoseThatCanBeHandled) {
  Open({.all_body_bytes = 400'000, .body_start = std::chrono::milliseconds(10)});
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  streaming.Say(Post("/echo", std::string(150'000, 'x')));
  const std::string body(200'000, 'y');
  ASSERT_TRUE(Happens([&] {
    Wire announcing = Connect();
    announcing.Say("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    return server_->counters().slow_bodies > 0;
  }));
  Wire posting = Connect();
  posting.Say(Post("/echo", body));
  EXPECT_THAT(posting.ReadUntil("POST " + body), StartsWith("HTTP/1.1 200 OK"));
  Kept()->Write("data: 2\n\n");
  EXPECT_THAT(streaming.ReadUntil("data: 2\n\n"), EndsWith("data: 2\n\n"));
  Kept()->End();
  Forget();
  EXPECT_THAT(streaming.ReadAll(), HasSubstr("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace troupe
