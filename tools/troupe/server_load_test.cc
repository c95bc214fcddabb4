// Load on a server of this process that answers at once.
#include "troupe/server_load.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "server/http/http_server.h"

namespace troupe {
namespace {

class ServerLoad : public testing::Test {
 protected:
  void SetUp() override {
    HttpServerOptions options;
    options.port = 0;
    auto server = HttpServer::Listen(
        options, {.handle = [](const HttpRequest&, const HttpReplyPtr& reply) {
          reply->Begin({.content_type = "text/event-stream"});
          reply->Write("data: {\"choices\":[{\"text\":\"a\"}]}\n\n");
          reply->Write("data: {\"choices\":[{\"text\":\"b\"}]}\n\ndata: [DONE]\n\n");
          reply->End();
        }});
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    target_.url = ParseHttpUrl(server_->Address()).value();
  }

  // Requests that were to be sent at those times.
  SeenLoad Send(const std::vector<double>& times, std::size_t clients) {
    std::vector<PlannedRequest> plan;
    for (const double at : times) {
      plan.push_back({.at = at, .lengths = {.prompt = 3, .answer = 2}, .seed = plan.size()});
    }
    return RunLoad(target_, {.tokens = {1, 2, 3}}, plan, clients);
  }

  std::unique_ptr<HttpServer> server_;
  AskedServer target_;
};

TEST_F(ServerLoad, TimesAtARateCountFromWhenARequestWasToBeSent) {
  // As if this program had had no time for them for that long.
  const SeenLoad seen = Send({-20, -10}, /*clients=*/0);
  for (std::size_t i = 0; i < 2; ++i) {
    const SeenAnswer& answer = seen.answers.at(i);
    ASSERT_TRUE(answer.status.ok()) << answer.status.ToString();
    const double late = i == 0 ? 20 : 10;
    EXPECT_GE(answer.late, late);
    EXPECT_GE(answer.first, answer.late);
    EXPECT_GE(answer.whole, answer.first);
    EXPECT_LE(answer.whole, late + seen.seconds);
    ASSERT_EQ(answer.gaps.size(), 1u);
    EXPECT_LE(answer.gaps[0], seen.seconds);  // between two pieces nothing is planned
  }
}

TEST_F(ServerLoad, RequestsAtARateAreSentAtTheirTimesAndNotBefore) {
  const Stopwatch watch;
  const SeenLoad seen = Send({0, 0.1, 0.1}, /*clients=*/0);
  EXPECT_GE(watch.Seconds(), 0.1);
  for (const SeenAnswer& answer : seen.answers) {
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_GE(answer.late, 0);
  }
}

TEST_F(ServerLoad, TimesOfAClientCountFromWhenItWasFree) {
  const SeenLoad seen = Send(std::vector<double>(20, 0), /*clients=*/2);
  double sum = 0;
  for (const SeenAnswer& answer : seen.answers) {
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_EQ(answer.late, 0);
    sum += answer.whole;
  }
  EXPECT_LE(sum, 2 * seen.seconds);  // two at a time; from the start it would be far more
}

}  // namespace
}  // namespace troupe
