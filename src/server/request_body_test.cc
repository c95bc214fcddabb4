#include "server/request_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "server/http/http_client.h"
#include "server/http/http_server.h"

namespace troupe {
namespace {

TEST(RequestBody, CountsTheValuesOfATextAndNotWhatIsInStrings) {
  EXPECT_EQ(CountJsonValues("1"), 1u);
  EXPECT_EQ(CountJsonValues("[1,2,3]"), 4u);
  EXPECT_EQ(CountJsonValues(R"({"a":[1,2],"b":"x,[{,\",,"})"), 5u);
  EXPECT_EQ(CountJsonValues(R"(["a\\",1])"), 3u);
}

TEST(RequestBody, TooManyValuesAreRefusedBeforeTheyAreMade) {
  std::string body = "[1";
  for (std::size_t i = 2; i < kMostBodyValues; ++i) body += ",1";
  const auto read = [](const JsonValue& json) { return json.size(); };
  EXPECT_EQ(ReadBody<std::size_t>(body + "]", read).value(), kMostBodyValues - 1);
  const Result<std::size_t> refused = ReadBody<std::size_t>(body + ",1]", read);
  EXPECT_EQ(refused.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("131073 values"));
}

TEST(RequestBody, ASmallOneIsReadAndAnsweredWhileALargeOneIsBeingRead) {
  std::promise<void> reads_large, go_on;
  const auto handle = [&](const HttpRequest& request, const HttpReplyPtr& reply) {
    const Result<std::string> first =
        ReadBody<std::string>(request.body, [&](const JsonValue& json) {
          if (request.body.size() > kSmallBodyBytes) {
            reads_large.set_value();
            go_on.get_future().wait();
          }
          return json.String().substr(0, 1);
        });
    reply->Send({.body = *first});
  };
  const auto server =
      HttpServer::Listen({.port = 0, .certificate = "", .key = ""}, {.handle = handle}).value();
  const HttpUrl url = ParseHttpUrl(server->Address()).value();
  const auto ask = [&url](std::size_t bytes, char letter) {
    const Result<HttpResponse> response =
        AskHttp(url,
                {.method = "POST",
                 .path = "/",
                 .headers = {},
                 .body = '"' + std::string(bytes - 2, letter) + '"'},
                {.silence = std::chrono::seconds(20)});
    return response.ok() ? response->body : response.status().ToString();
  };
  auto large = std::async(std::launch::async, ask, kSmallBodyBytes + 1, 'a');
  reads_large.get_future().wait();
  EXPECT_EQ(ask(kSmallBodyBytes, 'b'), "b");
  EXPECT_EQ(ask(3, 'c'), "c");
  EXPECT_EQ(server->counters().overtook, 2u);
  go_on.set_value();
  EXPECT_EQ(large.get(), "a");
}

}  // namespace
}  // namespace troupe
