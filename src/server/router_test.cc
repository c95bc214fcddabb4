#include "server/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/fake_reply_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class RouterTest : public testing::Test {
 protected:
  explicit RouterTest(AccessRules rules = {}) : router_(std::move(rules)) {
    const auto say = [](std::string text) {
      return [text](const HttpRequest&, const HttpReplyPtr& reply) { reply->Send({.body = text}); };
    };
    router_.Add("GET", "/open", Router::Door::kOpen, say("open"));
    router_.Add("GET", "/both", Router::Door::kKeyed, say("got"));
    router_.Add("POST", "/both", Router::Door::kKeyed, say("posted"));
  }

  HttpResponse Ask(std::string method, std::string path, HttpHeaders headers = {}) {
    const auto reply = std::make_shared<FakeReply>();
    router_.Serve(
        {.method = std::move(method), .path = std::move(path), .headers = std::move(headers)},
        reply);
    HttpResponse response = reply->head();
    response.body = reply->body();
    return response;
  }

  Router router_;
};

class KeyedRouterTest : public RouterTest {
 protected:
  KeyedRouterTest() : RouterTest({.keys = {"secret"}, .origins = {"https://a.example"}}) {}
};

TEST_F(RouterTest, FindsTheHandlerOfAPathAndMethod) {
  EXPECT_EQ(Ask("GET", "/both").body, "got");
  EXPECT_EQ(Ask("POST", "/both").body, "posted");
  EXPECT_EQ(Ask("HEAD", "/both").body, "got");
}

TEST_F(RouterTest, APathThatIsNotThereIsNotFound) {
  const HttpResponse response = Ask("GET", "/none");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("GET /none"));
}

TEST_F(RouterTest, AnotherMethodSaysWhichThereAre) {
  const HttpResponse response = Ask("DELETE", "/both");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response.headers, "allow"), "GET, POST");
}

TEST_F(KeyedRouterTest, WhoHasNoKeyIsToldSoAndLearnsNoPaths) {
  EXPECT_EQ(Ask("GET", "/both").status, 401);
  EXPECT_THAT(Ask("GET", "/both").body, HasSubstr("Authorization: Bearer"));
  EXPECT_EQ(Ask("GET", "/both", {{"Authorization", "Bearer wrong"}}).status, 401);
  EXPECT_EQ(Ask("GET", "/none").status, 401);
  EXPECT_EQ(Ask("GET", "/both", {{"Authorization", "Bearer secret"}}).body, "got");
  EXPECT_EQ(Ask("GET", "/open").body, "open");
}

TEST_F(KeyedRouterTest, ErrorsOfAnthropicsPathsHaveTheirShape) {
  EXPECT_THAT(Ask("POST", "/v1/messages").body, HasSubstr(R"("type":"error")"));
}

TEST_F(KeyedRouterTest, APageMayAskBeforehandAndIsAnsweredWithWhatItMay) {
  const HttpHeaders origin = {{"Origin", "https://a.example"}};
  EXPECT_EQ(Ask("OPTIONS", "/both", origin).status, 204);
  for (const HttpResponse& response : {Ask("OPTIONS", "/both", origin), Ask("GET", "/open", origin),
                                       Ask("GET", "/both", origin)}) {
    EXPECT_EQ(HeaderOf(response.headers, "access-control-allow-origin"), "https://a.example");
  }
  EXPECT_EQ(HeaderOf(Ask("GET", "/open").headers, "access-control-allow-origin"), "");
}

}  // namespace
}  // namespace troupe
