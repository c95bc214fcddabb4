#include "server/api_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

TEST(ApiError, EveryCodeHasAStatusOfHttp) {
  EXPECT_EQ(HttpStatusOf(OkStatus()), 200);
  EXPECT_EQ(HttpStatusOf(Status(Code::kInvalidArgument, "a")), 400);
  EXPECT_EQ(HttpStatusOf(Status(Code::kResourceExhausted, "too long")), 400);
  EXPECT_EQ(HttpStatusOf(Status(Code::kNotFound, "a")), 404);
  EXPECT_EQ(HttpStatusOf(Status(Code::kUnavailable, "full").WithRetryAfter(3)), 429);
  EXPECT_EQ(HttpStatusOf(Status(Code::kUnavailable, "ending")), 503);
  EXPECT_EQ(HttpStatusOf(Status(Code::kDataLoss, "disk")), 500);
  EXPECT_EQ(HttpStatusOf(Status(Code::kDeadlineExceeded, "late")), 504);
}

TEST(ApiError, AFullQueueSaysWhenToComeAgain) {
  const HttpResponse response =
      ErrorResponse(Status(Code::kUnavailable, "full").WithRetryAfter(2.2));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(HeaderOf(response.headers, "retry-after"), "3");
}

TEST(ApiError, EachApiGetsErrorsInItsOwnShape) {
  const Status status(Code::kInvalidArgument, "n: \"5\", expected less");
  const Json open = Json::Parse(ErrorBody(status)).value();
  EXPECT_EQ(open.Find("error")->Find("message")->AsString(), status.message());
  EXPECT_EQ(open.Find("error")->Find("type")->AsString(), "invalid_request_error");
  const Json anthropic = Json::Parse(ErrorBody(status, ErrorStyle::kAnthropic)).value();
  EXPECT_EQ(anthropic.Find("type")->AsString(), "error");
  EXPECT_EQ(anthropic.Find("error")->Find("message")->AsString(), status.message());
}

TEST(ApiError, AnthropicsClientsTellErrorsApartByTheirType) {
  const auto type = [](int status) {
    const Json body =
        Json::Parse(ErrorBody(Status(Code::kInternal, "a"), ErrorStyle::kAnthropic, status))
            .value();
    return std::string(body.Find("error")->Find("type")->AsString());
  };
  for (const auto& [status, name] : {std::pair(400, "invalid_request_error"),
                                     {401, "authentication_error"},
                                     {403, "permission_error"},
                                     {404, "not_found_error"},
                                     {413, "request_too_large"},
                                     {429, "rate_limit_error"},
                                     {500, "api_error"},
                                     {503, "overloaded_error"},
                                     {504, "timeout_error"}}) {
    EXPECT_EQ(type(status), name) << status;
  }
}

TEST(ApiError, AModelThatIsNotThereHasOpenAisCode) {
  const HttpResponse response = NoSuchModel("gpt-x", "tiny", ErrorStyle::kOpenAi);
  EXPECT_EQ(response.status, 404);
  const Json body = Json::Parse(response.body).value();
  EXPECT_EQ(body.Find("error")->Find("code")->AsString(), "model_not_found");
  EXPECT_THAT(body.Find("error")->Find("message")->AsString(),
              AllOf(HasSubstr("gpt-x"), HasSubstr("tiny")));
}

TEST(ApiError, AnthropicsClientsGetTheirShapeOnPathsThatOthersHaveToo) {
  const HttpRequest theirs{.path = "/v1/models/x",
                           .headers = {{"anthropic-version", "2023-06-01"}}};
  EXPECT_EQ(StyleOf(theirs), ErrorStyle::kAnthropic);
  EXPECT_EQ(StyleOf(HttpRequest{.path = "/v1/models/x"}), ErrorStyle::kOpenAi);
  EXPECT_EQ(StyleOf(HttpRequest{.path = "/v1/messages"}), ErrorStyle::kAnthropic);
  const Json body = Json::Parse(NoSuchModel("x", "tiny", ErrorStyle::kAnthropic).body).value();
  EXPECT_EQ(body.Find("error")->Find("type")->AsString(), "not_found_error");
}

TEST(ApiError, APromptThatIsTooLongIsToldInTheWordsThatClientsOfTheApiLookFor) {
  const Json open = Json::Parse(ErrorBody(PromptTooLong(5000, 4096, ErrorStyle::kOpenAi))).value();
  EXPECT_THAT(open.Find("error")->Find("message")->AsString(),
              ContainsRegex("This model's maximum context length is 4096 tokens. However, .* 5000 "
                            "tokens"));
  EXPECT_EQ(*open.Find("error")->Find("code"), Json("context_length_exceeded"));
  const Status status = PromptTooLong(5000, 4096, ErrorStyle::kAnthropic);
  EXPECT_EQ(HttpStatusOf(status), 400);
  EXPECT_TRUE(status.context_full());
  const Json anthropic = Json::Parse(ErrorBody(status, ErrorStyle::kAnthropic)).value();
  EXPECT_EQ(anthropic.Find("error")->Find("type")->AsString(), "invalid_request_error");
  EXPECT_THAT(
      anthropic.Find("error")->Find("message")->AsString(),
      AllOf(StartsWith("prompt is too long: 5000 tokens > 4096 maximum"), HasSubstr("--ctx")));
}

TEST(ApiError, TheFieldIsNamedAndTheCodeIsATextOrNull) {
  const auto error = [](Status status) {
    return *Json::Parse(ErrorBody(std::move(status))).value().Find("error");
  };
  const auto param = [&](const char* message) {
    return *error(Status(Code::kInvalidArgument, message)).Find("param");
  };
  EXPECT_EQ(param("request: messages[0].role: \"king\", expected more"), Json("messages[0].role"));
  EXPECT_EQ(param("request: no 'messages'"), Json("messages"));
  EXPECT_EQ(param("request: not JSON: line 1"), Json());
  EXPECT_EQ(param("the disk is full"), Json());
  EXPECT_EQ(*error(Status(Code::kInvalidArgument, "a")).Find("code"), Json());
}

TEST(ApiError, AFullContextIsToldByTheErrorsOwnFlagAndNeverByItsWords) {
  const auto code = [](const Status& status) {
    return *Json::Parse(ErrorBody(status)).value().Find("error")->Find("code");
  };
  EXPECT_EQ(code(ContextFull("too long")), Json("context_length_exceeded"));
  EXPECT_EQ(code(Error(Code::kResourceExhausted, "a grammar without context")), Json());
  EXPECT_TRUE(StatusIn(ErrorResponse(ContextFull("too long"))).context_full());
  const Status quotes = InvalidArgument(R"(request: input: "code":"context_length_exceeded")");
  EXPECT_FALSE(StatusIn(ErrorResponse(quotes)).context_full());
}

}  // namespace
}  // namespace troupe
