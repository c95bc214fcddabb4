#include "server/api_error.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace troupe {
namespace {

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
  EXPECT_EQ(*error(Status(Code::kResourceExhausted, "more than the context holds")).Find("code"),
            Json("context_length_exceeded"));
}

}  // namespace
}  // namespace troupe
