// What requests keep of the server's memory while they wait and are answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "api/model_access.h"
#include "server/answer_size.h"
#include "server/service_for_test.h"
#include "server/token_logprobs.h"
#include "split/wire/cloud_request.h"

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

TEST_F(ServiceMemoryTest, PromptsThatAnswersRepeatAreCounted) {
  Serve(Model::Open(kPath, {.context = 16384, .threads = 2}).value());
  std::string prompt;
  for (int i = 0; i < 1600; ++i) prompt += "The kernel ";
  const std::string body = R"({"prompt":")" + prompt + R"(","max_tokens":1,"echo":true,"n":)";
  const auto reply = Post("/v1/completions", body + "128}");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_EQ(Json::Parse(reply->body())->Find("error")->Find("param")->AsString(), "n");
  EXPECT_EQ(PostJson("/v1/completions", body + "2}").Find("choices")->size(), 2u);
}

std::string Repeated(std::size_t bytes) {
  return R"({"input":"Hi","max_output_tokens":2,"user":")" + std::string(bytes, 'u') + R"("})";
}

TEST_F(ServiceMemoryTest, WhatResponsesRepeatIsKeptInARoomOfItsOwnUntilTheyEnd) {
  constexpr std::size_t kThird = kKeptByRequests.count() / 3;
  const auto go_on = Halt();
  const auto first = Start("POST", "/v1/responses", Repeated(kThird)),
             second = Start("POST", "/v1/responses", Repeated(kThird));
  EXPECT_GE(kept(), 2 * kThird);
  EXPECT_LE(kept(), 2 * kThird + 8192);
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

TEST_F(ServiceMemoryTest, WhatEndsAskTakesRoomWhileItWaits) {
  served_.for_ends = ModelProof{.model = {1, 2}, .arithmetic = 3};
  constexpr std::size_t kMoreThanHalf = kKeptByRequests.count() / 2 + 1;
  Request request{.prompt = std::vector<TokenId>(10, 5)};
  request.max_tokens = 2;
  request.stop = {std::string(kMoreThanHalf / 10, 's')};  // each byte of it takes ten
  const std::string body = Encode(CloudRequest{.proof = *served_.for_ends, .request = request});
  const auto go_on = Halt();
  const auto first = Start("POST", "/split/answers", body);
  EXPECT_GE(kept(), kMoreThanHalf);
  EXPECT_EQ(Post("/split/answers", body)->status(), 429);
  go_on->set_value();
  first->WaitForEnd();
  // The thread that has told the end lets go of the answer next.
  for (int i = 0; i < 10'000 && kept() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(kept(), 0);
}

TEST_F(ServiceMemoryTest, APromptThatDoesNotFitIsRefusedBeforeTheModelIsAsked) {
  const auto reply = Post("/v1/completions", Asking(model().plan().context + 1, 100));
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("context_length_exceeded"));
  EXPECT_EQ(model().metrics().requests_refused, 0u);
}

constexpr const char* kManyLogprobs =
    R"({"prompt":"The kernel","ignore_eos":true,"logprobs":20,"n":100,"max_tokens":)";

TEST_F(ServiceMemoryTest, AnAnswerThatCouldNotBeSentIsNotComputed) {
  const auto reply = Post("/v1/completions", std::string(kManyLogprobs) + "90}");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr(R"("param":"n")"));
  EXPECT_EQ(model().metrics().passes, 0u);
  const auto stream =
      Start("POST", "/v1/completions", std::string(kManyLogprobs) + R"(90,"stream":true})");
  stream->WaitFor("logprobs");
  EXPECT_EQ(stream->status(), 200);
  stream->Leave();
}

TEST_F(ServiceMemoryTest, RoomForLogprobsIsTakenBeforeTheyCome) {
  const auto go_on = Halt();
  const auto first = Start("POST", "/v1/completions", std::string(kManyLogprobs) + "20}");
  EXPECT_GT(kept(), 100 * 20 * 20 * kCompletionLogprobBytes);
  go_on->set_value();
  first->WaitForEnd();
  EXPECT_LT(first->body().size(), kMostAnswerBytes);
  const Json answer = Json::Parse(first->body()).value();
  ASSERT_EQ(answer.Find("choices")->size(), 100u);
  const Json* const logprobs = (*answer.Find("choices"))[99].Find("logprobs");
  for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs->Find(list)->size(), 20u) << list;
  }
}

TEST_F(ServiceMemoryTest, AnAnswerOfAnyLengthTakesMoreRoomAsItGrows) {
  Serve(Model::Open(kPath, {.context = 1024, .threads = 2}).value());
  const auto go_on = Halt();
  const auto reply = Start("POST", "/v1/completions",
                           R"({"prompt":"The","ignore_eos":true,"logprobs":20,"max_tokens":-1})");
  EXPECT_LT(kept(), 513 * 22 * kCompletionLogprobBytes + 16384);
  go_on->set_value();
  reply->WaitForEnd();
  EXPECT_EQ(reply->status(), 200);
  const Json answer = Json::Parse(reply->body()).value();
  EXPECT_GT((*answer.Find("choices"))[0].Find("logprobs")->Find("tokens")->size(), 1000u);
}

TEST_F(ServiceMemoryTest, ARequestThatKeepsMoreThanAllMayIsRefused) {
  const auto reply = Post("/v1/responses", Repeated(kKeptByRequests.count()));
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("8.0 MiB"));
}

}  // namespace
}  // namespace troupe
