// What requests keep of the server's memory while they wait and are answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "api/model_access.h"
#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ServiceMemoryTest : public ServiceTest {
 protected:
  // No request is answered until the returned promise is set.
  std::shared_ptr<std::promise<void>> Halt() {
    auto goes_on = std::make_shared<std::promise<void>>();
    ModelAccess::Between(model(), [goes_on] { goes_on->get_future().wait(); });
    return goes_on;
  }
  double kept() { return MetricOf("troupe_requests_kept_bytes"); }
  double MetricOf(const std::string& name) {
    const std::string page = Start("GET", "/metrics")->body();
    const std::size_t at = page.find("\n" + name + " ");
    EXPECT_NE(at, page.npos) << name;
    return std::stod(page.substr(at + name.size() + 2));
  }
};

std::string Repeated(std::size_t bytes) {
  return R"({"input":"Hi","max_output_tokens":2,"user":")" + std::string(bytes, 'u') + R"("})";
}

TEST_F(ServiceMemoryTest, WhatResponsesRepeatIsKeptInARoomOfItsOwnUntilTheyEnd) {
  constexpr std::size_t kThird = kKeptByRequests.count() / 3;
  const auto go_on = Halt();
  const auto first = Start("POST", "/v1/responses", Repeated(kThird)),
             second = Start("POST", "/v1/responses", Repeated(kThird));
  EXPECT_GE(kept(), 2 * kThird);
  EXPECT_LE(kept(), 2 * kThird + 2048);
  const auto third = Post("/v1/responses", Repeated(kThird));
  EXPECT_EQ(third->status(), 429);
  EXPECT_FALSE(HeaderOf(third->head().headers, "retry-after").empty());
  EXPECT_EQ(Start("POST", "/v1/responses", Repeated(10))->status(), 0);  // it waits
  go_on->set_value();
  first->WaitForEnd();
  second->WaitForEnd();
  EXPECT_EQ(first->status(), 200);
  EXPECT_THAT(second->body(), HasSubstr(std::string(kThird, 'u')));
  EXPECT_EQ(Post("/v1/responses", Repeated(2 * kThird))->status(), 200);
}

std::string Asking(std::size_t tokens, int n) {
  std::string prompt = "5";
  for (std::size_t i = 1; i < tokens; ++i) prompt += ",5";
  return R"({"max_tokens":1,"n":)" + std::to_string(n) + R"(,"prompt":[)" + prompt + "]}";
}

TEST_F(ServiceMemoryTest, PromptsThatWaitAreKeptOnceHoweverManyAnswersTheyHave) {
  const std::size_t tokens = model().plan().context - 1;
  const auto go_on = Halt();
  const auto one = Start("POST", "/v1/completions", Asking(tokens, 1));
  const double of_one = kept();
  EXPECT_GE(of_one, tokens * sizeof(TokenId));
  const auto many = Start("POST", "/v1/completions", Asking(tokens, 100));
  EXPECT_LT(kept(), of_one + 10 * tokens * sizeof(TokenId) + 100 * 2048);
  go_on->set_value();
  one->WaitForEnd();
  many->WaitForEnd();
  EXPECT_EQ(many->status(), 200);
  EXPECT_EQ(Json::Parse(many->body())->Find("choices")->size(), 100u);
}

TEST_F(ServiceMemoryTest, APromptThatDoesNotFitIsRefusedBeforeTheModelIsAsked) {
  const auto reply = Post("/v1/completions", Asking(model().plan().context + 1, 100));
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("context_length_exceeded"));
  EXPECT_EQ(model().metrics().requests_refused, 0u);
}

TEST_F(ServiceMemoryTest, ARequestThatKeepsMoreThanAllMayIsRefused) {
  const auto reply = Post("/v1/responses", Repeated(kKeptByRequests.count()));
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("8.00 MiB"));
}

}  // namespace
}  // namespace troupe
