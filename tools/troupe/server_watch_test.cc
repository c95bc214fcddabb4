// Servers that only have a page of metrics.
#include "troupe/server_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>

#include "server/http/http_server.h"

namespace troupe {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<HttpServer> ServeMetricsBy(std::function<HttpResponse()> answer) {
  return HttpServer::Listen({.port = 0, .certificate = "", .key = ""},
                            {.handle = [answer = std::move(answer)](
                                           const HttpRequest&,
                                           const HttpReplyPtr& reply) { reply->Send(answer()); }})
      .value();
}

RunningServer At(const std::string& address) {
  return {.pid = ::getpid(), .facts = {.model = "m", .address = address}};
}

TEST(WatchedServers, AreAskedTwiceForTheirTokens) {
  std::atomic<int> looks = 0;
  const auto server = ServeMetricsBy([&] {
    return HttpResponse{.body =
                            "troupe_requests_now{state=\"queued\"} 1\n"
                            "troupe_requests_now{state=\"decoding\"} 2\n"
                            "troupe_tokens_total{kind=\"prompt\"} 99\n"
                            "troupe_tokens_total{kind=\"generated\"} " +
                            std::to_string(1000 * looks++) + "\n"};
  });
  const auto keyed = ServeMetricsBy([] { return HttpResponse{.status = 401, .body = "no key"}; });
  const std::vector<RunningServer> servers = {At(server->Address()), At(keyed->Address()),
                                              At("http://127.0.0.1:1"), At("nonsense://")};
  const std::vector<ServerActivity> activity = WatchServers(servers, 20ms);
  ASSERT_EQ(activity.size(), 4u);
  EXPECT_EQ(looks, 2);
  EXPECT_EQ(activity[0].requests, 3);
  ASSERT_TRUE(activity[0].tokens_per_second.has_value());
  EXPECT_GT(*activity[0].tokens_per_second, 0);
  EXPECT_LE(*activity[0].tokens_per_second, 1000 / 0.02);
  for (const ServerActivity& one : activity) EXPECT_GT(one.resident.value_or(Bytes()), Bytes());
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(activity[i].requests, std::nullopt) << i;
    EXPECT_EQ(activity[i].tokens_per_second, std::nullopt) << i;
    EXPECT_EQ(activity[i].wants_key, i == 1) << i;
  }
}

TEST(WatchedServers, OfAProcessThatIsGoneHaveNoMemory) {
  RunningServer gone = At("http://127.0.0.1:1");
  gone.pid = 1 << 30;  // more than there may be
  EXPECT_EQ(WatchServers(std::vector{gone}, 1ms)[0].resident, std::nullopt);
  EXPECT_TRUE(WatchServers({}, 1ms).empty());
}

TEST(AddressesToAsk, AreOfThisMachineWhereAServerListensEverywhere) {
  EXPECT_EQ(AddressToAsk("http://0.0.0.0:8080"), "http://127.0.0.1:8080");
  EXPECT_EQ(AddressToAsk("https://[::]:8080"), "https://[::1]:8080");
  EXPECT_EQ(AddressToAsk("http://10.0.0.0:8080"), "http://10.0.0.0:8080");
}

}  // namespace
}  // namespace troupe
