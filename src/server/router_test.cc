#include "server/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"
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
    router_.Add("POST", "/order", Router::Door::kOrder, say("done"));
  }

  HttpResponse Ask(std::string method, std::string path, HttpHeaders headers = {},
                   std::string peer = "127.0.0.1:50000") {
    const auto reply = std::make_shared<FakeReply>();
    router_.Serve({.method = std::move(method),
                   .path = std::move(path),
                   .headers = std::move(headers),
                   .peer = std::move(peer)},
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

TEST_F(RouterTest, AKeyThatNobodyHasCheckedReachesNoHandler) {
  const auto key = [](const HttpRequest& request, const HttpReplyPtr& reply) {
    reply->Send({.body = std::string(KeyOf(request))});
  };
  router_.Add("GET", "/key", Router::Door::kKeyed, key);
  for (const HttpHeaders& headers :
       {HttpHeaders{{"Authorization", "Bearer one"}}, HttpHeaders{{"X-API-KEY", "one"}}}) {
    EXPECT_EQ(Ask("GET", "/key", headers).body, "");
  }
  router_.set_rules({.keys = {"one"}});
  EXPECT_EQ(Ask("GET", "/key", {{"Authorization", "Bearer one"}}).body, "one");
}

TEST_F(RouterTest, OrdersWithoutAKeyComeFromProgramsOnThisMachineAlone) {
  for (const char* here : {"127.0.0.1:50000", "[::1]:50000", "[::ffff:127.0.0.1]:50000"}) {
    EXPECT_EQ(Ask("POST", "/order", {}, here).body, "done") << here;
    EXPECT_EQ(Ask("POST", "/order", {{"Origin", "http://page.example"}}, here).status, 403) << here;
  }
  for (const char* there : {"10.0.0.7:50000", "[fe80::1]:50000", ""}) {
    EXPECT_EQ(Ask("POST", "/order", {}, there).status, 403) << there;
    EXPECT_EQ(Ask("POST", "/both", {}, there).body, "posted") << there;
  }
  EXPECT_THAT(Ask("POST", "/order", {}, "10.0.0.7:1").body, HasSubstr("give the server keys"));
}

TEST_F(KeyedRouterTest, OrdersWithAKeyComeFromAnywhere) {
  const HttpHeaders key = {{"x-api-key", "secret"}};
  EXPECT_EQ(Ask("POST", "/order", key, "10.0.0.7:50000").body, "done");
  EXPECT_EQ(Ask("POST", "/order", {}, "127.0.0.1:50000").status, 401);
}

TEST_F(RouterTest, APathThatIsNotThereIsNotFound) {
  const HttpResponse response = Ask("GET", "/none");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("GET /none"));
}

TEST_F(RouterTest, APathWithAStarStandsForWhatGoesOnThere) {
  router_.Add("GET", "/both/*", Router::Door::kOpen,
              [](const HttpRequest& request, const HttpReplyPtr& reply) {
                reply->Send({.body = request.path});
              });
  EXPECT_EQ(Ask("GET", "/both/a/b").body, "/both/a/b");
  EXPECT_EQ(Ask("GET", "/both").body, "got");
  EXPECT_EQ(Ask("GET", "/both//").body, "got");
  EXPECT_EQ(Ask("GET", "/both/a/").body, "/both/a");
  std::string told;
  router_.WhenRefused([&](const std::string& path, int) { told = path; });
  EXPECT_EQ(Ask("POST", "/both/any").status, 405);
  EXPECT_EQ(told, "/both/*");  // metrics count strangers' paths as one
}

TEST_F(RouterTest, AnotherMethodSaysWhichThereAre) {
  const HttpResponse response = Ask("DELETE", "/both");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(HeaderOf(response.headers, "allow"), "GET, POST");
}

TEST_F(RouterTest, EveryResponseHasAnIdWhichMayBeTheClients) {
  const HttpResponse one = Ask("GET", "/both"), two = Ask("GET", "/none");
  EXPECT_THAT(std::string(HeaderOf(one.headers, "x-request-id")), testing::StartsWith("req_"));
  EXPECT_EQ(HeaderOf(one.headers, "request-id"), HeaderOf(one.headers, "x-request-id"));
  EXPECT_NE(HeaderOf(two.headers, "x-request-id"), "");
  EXPECT_NE(HeaderOf(two.headers, "x-request-id"), HeaderOf(one.headers, "x-request-id"));
  EXPECT_EQ(HeaderOf(Ask("GET", "/both", {{"X-Request-Id", "mine-1"}}).headers, "request-id"),
            "mine-1");
  EXPECT_THAT(
      std::string(HeaderOf(Ask("GET", "/both", {{"X-Request-Id", "a b"}}).headers, "request-id")),
      testing::StartsWith("req_"));
  EXPECT_NE(HeaderOf(router_.TransportError(413, "long", {}).headers, "x-request-id"), "");
}

TEST_F(RouterTest, ABodyThatIsCompressedIsRefused) {
  const HttpResponse response = Ask("POST", "/both", {{"Content-Encoding", "gzip"}});
  EXPECT_EQ(response.status, 415);
  EXPECT_THAT(response.body, HasSubstr("gzip"));
  EXPECT_EQ(Ask("POST", "/both", {{"Content-Encoding", "identity"}}).body, "posted");
}

TEST_F(KeyedRouterTest, WhoHasNoKeyIsToldSoAndLearnsNoPaths) {
  EXPECT_EQ(Ask("GET", "/both").status, 401);
  EXPECT_THAT(Ask("GET", "/both").body, HasSubstr("Authorization: Bearer"));
  EXPECT_EQ(HeaderOf(Ask("GET", "/both").headers, "www-authenticate"), "Bearer");
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

TEST_F(KeyedRouterTest, RulesThatReplaceOthersHoldForTheNextRequest) {
  router_.set_rules({.keys = {"other"}});
  EXPECT_EQ(Ask("GET", "/both", {{"Authorization", "Bearer secret"}}).status, 401);
  EXPECT_EQ(Ask("GET", "/both", {{"Authorization", "Bearer other"}}).body, "got");
  const HttpHeaders origin = {{"Origin", "https://a.example"}};
  EXPECT_EQ(HeaderOf(Ask("GET", "/open", origin).headers, "access-control-allow-origin"), "");
}

class LocalRouterTest : public RouterTest {
 protected:
  LocalRouterTest()
      : RouterTest({.keys = {},
                    .origins = {"https://a.example"},
                    .local_only = true,
                    .hosts = {"Box.lan"}}) {}
};

TEST_F(LocalRouterTest, AHostThatIsNotThisMachineIsRefusedWhateverItsNameLeadsTo) {
  for (const char* host : {"localhost:8080", "127.0.0.1:8080", "[::1]:8080", "LOCALHOST", "box.lan",
                           "troupe.localhost:80", "192.168.1.4:8080", ""}) {
    EXPECT_EQ(Ask("GET", "/both", {{"Host", host}}).status, 200) << host;
  }
  for (const char* host : {"evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.evil", "box.lan.evil.example"}) {
    const HttpResponse response = Ask("GET", "/both", {{"Host", host}});
    EXPECT_EQ(response.status, 403) << host;
    EXPECT_THAT(response.body, HasSubstr("--allow-host"));
  }
}

TEST_F(LocalRouterTest, APageOfAnotherOriginIsRefusedEvenWhereItsRequestNeedsNoLeave) {
  const auto from = [&](const char* origin) {
    return Ask("POST", "/both", {{"Host", "localhost:8080"}, {"Origin", origin}}).status;
  };
  EXPECT_EQ(from("http://localhost:8080"), 200);
  EXPECT_EQ(from("https://a.example"), 200);
  EXPECT_EQ(from("http://localhost:3000"), 403);
  EXPECT_EQ(from("https://evil.example"), 403);
  EXPECT_EQ(from("null"), 403);
}

TEST_F(KeyedRouterTest, WhoAsksForKeysNeedNotKnowHosts) {
  EXPECT_EQ(
      Ask("GET", "/both", {{"Host", "evil.example"}, {"Authorization", "Bearer secret"}}).status,
      200);
}

class LoadingRouterTest : public testing::Test {
 protected:
  static HttpRequest Get(std::string path, HttpHeaders headers = {}) {
    return {.method = "GET", .path = std::move(path), .headers = std::move(headers)};
  }

  Router router_{{.keys = {"secret"}, .origins = {"https://a.example"}}, Router::Start::kLoading};
};

TEST_F(LoadingRouterTest, UntilItIsOpenEveryRequestIsToldToComeAgain) {
  std::vector<int> told;
  router_.WhenRefused([&](const std::string&, int status) { told.push_back(status); });
  router_.Add("GET", "/both", Router::Door::kKeyed,
              [](const HttpRequest&, const HttpReplyPtr& reply) { reply->Send({.body = "got"}); });
  const HttpHeaders headers = {{"x-api-key", "secret"}, {"Origin", "https://a.example"}};
  for (const char* path : {"/both", "/none", "/"}) {
    const auto refusal = router_.Refusal(Get(path, headers));
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->status, 503);
    EXPECT_THAT(refusal->body, HasSubstr(R"("message":"the model is being loaded)"));
    EXPECT_NE(HeaderOf(refusal->headers, "Retry-After"), "");
    EXPECT_EQ(HeaderOf(refusal->headers, "Access-Control-Allow-Origin"), "https://a.example");
  }
  EXPECT_THAT(router_.Refusal(Get("/v1/messages", headers))->body, HasSubstr(R"("type":"error")"));
  EXPECT_EQ(router_.Refusal(Get("/both"))->status, 401);
  EXPECT_TRUE(told.empty());
  router_.Open();
  EXPECT_FALSE(router_.Refusal(Get("/both", headers)).has_value());
  EXPECT_EQ(router_.Refusal(Get("/none", headers))->status, 404);
}

TEST_F(LoadingRouterTest, HealthSaysThatTheModelIsBeingLoadedToAnybody) {
  for (const char* path : {"/health", "/v1/health"}) {
    const auto refusal = router_.Refusal(Get(path));
    ASSERT_TRUE(refusal.has_value());
    EXPECT_EQ(refusal->status, 503);
    EXPECT_EQ(refusal->body, R"({"status":"loading model"})");
  }
}

TEST_F(RouterTest, ErrorsOfTheTransportHaveTheShapeOfTheApiTheirPathBelongsTo) {
  EXPECT_THAT(router_.TransportError(413, "too long", {.path = "/v1/messages"}).body,
              HasSubstr(R"("type":"error")"));
  EXPECT_THAT(router_.TransportError(413, "too long", {.path = "/v1/completions"}).body,
              HasSubstr(R"({"error":{)"));
  EXPECT_EQ(router_.TransportError(503, "busy", {}).status, 503);
  EXPECT_THAT(router_.TransportError(413, "too long", {}).body, HasSubstr("pictures"));
}

// OpenAI's and Responses' are the same.
TEST_F(KeyedRouterTest, EveryErrorHasTheShapeOfTheApiItsPathBelongsTo) {
  const HttpHeaders key = {{"x-api-key", "secret"}};
  for (const auto& [path, is_open_ai] :
       {std::pair("/v1/messages", false), {"/v1/responses", true}}) {
    router_.Add("POST", path, Router::Door::kKeyed, [](const HttpRequest&, const HttpReplyPtr&) {});
    const auto check = [&, path = path, is_open_ai = is_open_ai](int status,
                                                                 const HttpResponse& response) {
      EXPECT_EQ(response.status, status) << path;
      const Json body = Json::Parse(response.body).value();
      const Json& error = *body.Find("error");
      EXPECT_EQ(body.Find("type") == nullptr, is_open_ai) << path << " " << status;
      EXPECT_EQ(error.Find("param") != nullptr, is_open_ai) << path << " " << status;
      EXPECT_NE(error.Find("message")->AsString(), "") << path << " " << status;
      EXPECT_NE(error.Find("type")->AsString(), "") << path << " " << status;
    };
    const auto refusal = [&, path = path](const char* method, const std::string& more,
                                          const HttpHeaders& headers) {
      return router_.Refusal({.method = method, .path = path + more, .headers = headers}).value();
    };
    check(401, refusal("POST", "", {}));
    check(404, refusal("POST", "/none", key));
    check(405, refusal("GET", "", key));
    check(415, refusal("POST", "", {{"x-api-key", "secret"}, {"Content-Encoding", "gzip"}}));
    for (const int status : {400, 408, 413, 431, 500, 503}) {
      check(status, router_.TransportError(status, "why", {.path = path}));
    }
    for (const Status& why :
         {Status(Code::kUnavailable, "full").WithRetryAfter(1),
          Status(Code::kUnavailable, "ending"), Status(Code::kDeadlineExceeded, "late")}) {
      check(HttpStatusOf(why), ErrorResponse(why, StyleOf(std::string_view(path))));
    }
  }
}

TEST_F(KeyedRouterTest, APageThatMayReadAnswersMayReadErrorsOfTheTransport) {
  const auto error = [&](const char* origin) {
    return router_.TransportError(
        413, "too long",
        {.path = "/both", .headers = {{"Origin", origin}, {"X-Request-Id", "mine"}}});
  };
  const HttpHeaders headers = error("https://a.example").headers;
  EXPECT_EQ(HeaderOf(headers, "Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(HeaderOf(headers, "x-request-id"), "mine");
  EXPECT_EQ(HeaderOf(error("https://b.example").headers, "Access-Control-Allow-Origin"), "");
}

TEST_F(KeyedRouterTest, TellsOfRequestsThatNoHandlerSees) {
  std::vector<std::string> told;
  router_.WhenRefused([&](const std::string& path, int status) {
    told.push_back(path + " " + std::to_string(status));
  });
  const HttpHeaders key = {{"x-api-key", "secret"}};
  Ask("GET", "/both");
  Ask("GET", "/none", key);
  Ask("DELETE", "/both", key);
  router_.TransportError(413, "too long", {.path = "/both"});
  router_.TransportError(408, "too slow", {});
  Ask("GET", "/both", key);      // is answered
  Ask("OPTIONS", "/both", key);  // is no refusal
  EXPECT_THAT(told, testing::ElementsAre("/both 401", " 404", "/both 405", "/both 413", " 408"));
}

}  // namespace
}  // namespace troupe
