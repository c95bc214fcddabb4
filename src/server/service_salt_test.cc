// What requests find of each other's prompts, and what they do not.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;
using SaltServiceTest = ServiceTest;

TEST_F(SaltServiceTest, RequestsShareWhatIsReadOfPromptsWithThoseOfTheSameSaltAlone) {
  Open({.sequences = 8});  // each has a page of the cache
  const std::string alone((*PostJson("/v1/completions", std::string(kSay) + "}").Find("choices"))[0]
                              .Find("text")
                              ->AsString());
  const auto cached = [&](const std::string& more, const HttpHeaders& headers = {}) {
    auto reply = std::make_shared<FakeReply>();
    router_->Serve({.method = "POST",
                    .path = "/v1/completions",
                    .headers = headers,
                    .body = std::string(kSay) + more + "}"},
                   reply);
    reply->WaitForEnd();
    const Json body = Json::Parse(reply->body()).value();
    EXPECT_EQ((*body.Find("choices"))[0].Find("text")->AsString(), alone);
    return body.Find("usage")->Find("prompt_tokens_details")->Find("cached_tokens")->AsCount();
  };
  const auto all = cached("");
  EXPECT_GT(all, 0u);
  EXPECT_EQ(cached(R"(,"cache_salt":"a")"), 0u);
  EXPECT_EQ(cached(R"(,"cache_salt":"b")"), 0u);
  EXPECT_EQ(cached(R"(,"cache_salt":"a")"), all);
  served_.options.cache_per_key = true;
  service_->Adopt(served_.options);
  router_->set_rules({.keys = {"one", "two"}});
  const HttpHeaders one = {{"Authorization", "Bearer one"}}, two = {{"x-api-key", "two"}};
  EXPECT_EQ(cached("", one), 0u);
  EXPECT_EQ(cached("", two), 0u);
  EXPECT_EQ(cached("", one), all);
  EXPECT_EQ(cached(R"(,"cache_salt":"a")", one), 0u);
  EXPECT_EQ(cached(R"(,"cache_salt":"a")", one), all);
  router_->set_rules({});
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(fmt::format("troupe_tokens_total{{kind=\"cached\"}} {}\n", 4 * all)));
}

TEST_F(SaltServiceTest, WhatSharesIsKnownByNothingThatAClientSaid) {
  router_->set_rules({.keys = {"SECRETKEY"}});
  std::string salt;
  served_.start = [&](Request request, Callbacks callbacks) {
    salt = request.cache_salt;
    return model().Start(std::move(request), std::move(callbacks));
  };
  const auto ask = [&] {
    auto reply = std::make_shared<FakeReply>();
    router_->Serve({.method = "POST",
                    .path = "/v1/completions",
                    .headers = {{"Authorization", "Bearer SECRETKEY"}},
                    .body = std::string(kSay) + R"(,"cache_salt":"OWNSALT"})"},
                   reply);
    reply->WaitForEnd();
    return salt;
  };
  const std::string own = ask();
  served_.options.cache_per_key = true;
  service_->Adopt(served_.options);
  const std::string of_key = ask();
  EXPECT_NE(own, of_key);
  for (const std::string& one : {own, of_key}) {
    EXPECT_EQ(one.size(), 64u);
    EXPECT_THAT(one, testing::Not(testing::AnyOf(HasSubstr("SECRETKEY"), HasSubstr("OWNSALT"))));
  }
}

}  // namespace
}  // namespace troupe
