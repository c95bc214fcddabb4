// Clients that say nothing, do not read or have gone hold up nobody, and are let go.
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

TEST_F(HttpServerTest, AConnectionThatSaysNothingIsClosed) {
  Open({.idle_time = 50ms});
  EXPECT_EQ(Ask(""), "");
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
  Open({.all_unread_bytes = 2 * kLarge + 50'000});
  std::vector<Wire> slow;
  for (int i = 0; i < 3; ++i) {
    slow.emplace_back(server_->port(), /*receive_buffer=*/4096);
    slow.back().Say(Get("/large"));
  }
  ASSERT_TRUE(Happens([&] { return server_->counters().too_slow == 1; }));  // the third
  Wire streaming = Connect();
  streaming.Say(Get("/stream"));
  streaming.ReadUntil("data: 1\n\n");
  const std::string piece = std::string(60'000, 'x') + "\n\n";
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Kept()->Write(piece));
    EXPECT_THAT(streaming.ReadUntil("\n\n"), EndsWith("xx\n\n"));
    EXPECT_THAT(Ask(Get("/echo", "Connection: close\r\n")), EndsWith("GET "));
  }
  EXPECT_TRUE(Happens([&] { return server_->counters().too_slow == 2; }));
  Kept()->End();
  Forget();
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
