// Clients that say nothing, do not read or have gone hold up nobody, and are let go.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http/http_server_for_test.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

TEST_F(HttpServerTest, ARequestThatDoesNotComeToItsEndIsEnded) {
  Open({.header_time = 50ms, .body_time = 50ms});
  EXPECT_THAT(Ask("GET /ec"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(Ask("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"),
              StartsWith("HTTP/1.1 408 "));
  EXPECT_EQ(server_->counters().timed_out, 2u);
}

TEST_F(HttpServerTest, WhoGoesOnSayingLittleAfterHisTimeHoldsUpNobody) {
  Open({.header_time = 50ms});
  Wire slow = Connect();
  slow.Say("GET /ec");
  EXPECT_THAT(slow.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 408 "));
  slow.Say("h");
  EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, BodiesThatDripMakeWayForOthersWhereTheyAreSlow) {
  for (const bool are_slow : {true, false}) {
    SCOPED_TRACE(are_slow);
    Open({.all_body_bytes = 1'000'000, .body_pace = are_slow ? 1e9 : 1, .body_start = 1s});
    const auto begin = [&](std::size_t announced, std::size_t bytes) {
      Wire wire = Connect();
      wire.Say(
          fmt::format("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", announced));
      wire.Say(std::string(bytes, 'x'));
      return wire;
    };
    Wire one = begin(260'000, 250'000), other = begin(260'000, 250'000);
    std::this_thread::sleep_for(1200ms);
    Wire fresh = begin(200'000, 60'000);
    Wire needy = Connect();
    needy.Say(Post("/echo", std::string(300'000, 'y')));
    EXPECT_THAT(needy.ReadUntil("\r\n\r\n"),
                StartsWith(are_slow ? "HTTP/1.1 200 OK" : "HTTP/1.1 503 "));
    EXPECT_EQ(server_->counters().slow_bodies, are_slow ? 2u : 0u);
    for (Wire* const slow : {&one, &other}) {
      if (!are_slow) slow->Say(std::string(10'000, 'x'));
      EXPECT_THAT(slow->ReadUntil("\r\n\r\n"),
                  StartsWith(are_slow ? "HTTP/1.1 408 " : "HTTP/1.1 200 OK"));
    }
    fresh.Say(std::string(140'000, 'x'));
    EXPECT_THAT(fresh.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200 OK"));
  }
}

TEST_F(HttpServerTest, AConnectionThatSaysNothingIsClosed) {
  Open({.header_time = 50ms});
  EXPECT_EQ(Ask(""), "");
  Open({.idle_time = 50ms});
  EXPECT_THAT(Ask(Get("/echo")), EndsWith("GET "));
}

TEST_F(HttpServerTest, AClientWhoLeavesAStreamIsNoticed) {
  Wire wire = Connect();
  wire.Say(Get("/stream"));
  EXPECT_THAT(wire.ReadUntil("data: 1\n\n"), HasSubstr("text/event-stream"));
  wire.Leave();
  EXPECT_EQ(gone_.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(Happens([&] { return server_->counters().connections == 0; }));
  EXPECT_FALSE(Kept()->Write("data: 2\n\n"));
}

TEST_F(HttpServerTest, AClientWhoLeavesAStreamWithRequestsAheadIsNoticed) {
  Wire wire = Connect();
  wire.Say(Get("/stream") + Get("/echo") + Get("/echo"));
  wire.ReadUntil("data: 1\n\n");
  wire.Leave();
  EXPECT_EQ(gone_.get_future().wait_for(20s), std::future_status::ready);
  Forget();
  EXPECT_TRUE(Happens([&] { return server_->counters().connections == 0; }));
}

TEST_F(HttpServerTest, AReaderWhoDoesNotReadHoldsUpNobodyAndIsLetGo) {
  Open({.unread_bytes = 100'000});
  Wire slow(server_->port(), /*receive_buffer=*/4096);
  slow.Say(Get("/stream"));
  Kept();
  const std::string piece(10'000, 'x');
  while (Kept()->Write(piece)) {
    EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), StartsWith("HTTP/1.1 200 OK"));
  }
  EXPECT_TRUE(Happens([&] { return server_->counters().too_slow == 1; }));
  const auto was_too_slow = [](const HttpEnded& ended) {
    return ended.how == HttpEnded::How::kTooSlow && ended.path == "/stream";
  };
  const std::lock_guard lock(log_mu_);
  EXPECT_EQ(std::ranges::count_if(log_, was_too_slow), 1);
}

TEST_F(HttpServerTest, WhereSlowReadersHaveAllTheMemoryOneOfThemGoesAndNobodyElse) {
  Open({.all_unread_bytes = kLarge + 50'000, .unread_bytes = 2 * kLarge});
  Wire large(server_->port(), /*receive_buffer=*/4096);
  large.Say(Get("/large"));
  large.Read(1);
  Wire streaming(server_->port(), /*receive_buffer=*/4096);
  streaming.Say(Get("/stream"));
  Kept();
  const std::string piece(60'000, 'x');
  for (int i = 0; i < 1000 && server_->counters().too_slow == 0; ++i) {
    Kept()->Write(piece);
    EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  }
  EXPECT_EQ(server_->counters().too_slow, 1u);
  Kept()->End();
  Forget();
}

TEST_F(HttpServerTest, AnAnswerForWhichSlowReadersLeaveNoRoomIsToldToComeAgain) {
  Open({.all_unread_bytes = kLarge + 50'000});
  Wire slow(server_->port(), /*receive_buffer=*/4096);
  slow.Say(Get("/large"));
  slow.Read(1);
  Wire other = Connect();
  other.Say(Get("/large"));
  EXPECT_THAT(other.ReadUntil("\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1")));
  other.ReadUntil("try again\n");
  EXPECT_EQ(server_->counters().turned_away, 1u);
  slow.Leave();
  ASSERT_TRUE(Happens([&] { return server_->counters().connections == 1; }));
  other.Say(Get("/large", "Connection: close\r\n"));
  EXPECT_GT(other.ReadAll().size(), kLarge);
  EXPECT_EQ(server_->counters().too_slow, 0u);
}

TEST_F(HttpServerTest, ASlowReaderWhoGoesOnReadingGetsAllOfALargeAnswer) {
  Open({.write_time = 300ms});
  Wire slow(server_->port(), /*receive_buffer=*/65536);
  slow.Say(Get("/large", "Connection: close\r\n"));
  std::string all;
  for (int i = 0; i < 30; ++i) {  // three times that long, which its buffers do not hold
    all += slow.Read(20'000);
    std::this_thread::sleep_for(30ms);
  }
  all += slow.ReadAll();
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_GT(all.size(), kLarge);
  EXPECT_EQ(server_->counters().too_slow, 0u);
}

}  // namespace
}  // namespace troupe
