#include "server/parked_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/fake_reply_for_test.h"
#include "server/service_paths.h"
#include "server/sse.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr const char* kBeat = ": the model is being loaded\n\n";

TEST(ParkedReply, WithoutABeatItIsTheReplyThatItIsAround) {
  const auto inner = std::make_shared<FakeReply>();
  ParkedReply reply(inner, std::string(kChat));
  reply.Send({.status = 400, .body = "{}"});
  EXPECT_EQ(inner->status(), 400);
  EXPECT_EQ(inner->body(), "{}");
  EXPECT_FALSE(reply.Wait());
}

TEST(ParkedReply, BeatsBeginAStreamThatTheAnswerGoesOnWith) {
  const auto inner = std::make_shared<FakeReply>();
  ParkedReply reply(inner, std::string(kChat));
  EXPECT_TRUE(reply.Wait());
  EXPECT_TRUE(reply.Wait());
  EXPECT_EQ(inner->status(), 200);
  EXPECT_EQ(inner->head().content_type, kEventStream);
  reply.Begin(StreamHead());
  EXPECT_FALSE(reply.Wait());
  reply.Write("data: 1\n\n");
  reply.End();
  EXPECT_EQ(inner->body(), std::string(kBeat) + kBeat + "data: 1\n\n");
}

TEST(ParkedReply, AnErrorIsTheLastEventOfAStreamThatHasBegun) {
  const Status status = InvalidArgument("request: n: 0, expected more");
  const auto told = [&](std::string_view endpoint) {
    const auto inner = std::make_shared<FakeReply>();
    ParkedReply reply(inner, std::string(endpoint));
    reply.Wait();
    reply.Send(ErrorResponse(status, StyleOf(endpoint)));
    return inner->body().substr(std::string(kBeat).size());
  };
  EXPECT_EQ(told(kChat), "data: " + ErrorBody(status) + "\n\ndata: [DONE]\n\n");
  EXPECT_EQ(told(kMessages),
            "event: error\ndata: " + ErrorBody(status, ErrorStyle::kAnthropic) + "\n\n");
  EXPECT_THAT(told(kResponses), testing::StartsWith("event: error\ndata: {\"type\":\"error\","));
  EXPECT_THAT(told(kResponses), HasSubstr(R"("param":"n")"));
}

TEST(ParkedReply, NobodyIsToldWhoHasLeft) {
  const auto inner = std::make_shared<FakeReply>();
  ParkedReply reply(inner, std::string(kChat));
  inner->Leave();
  EXPECT_FALSE(reply.Wait());
}

}  // namespace
}  // namespace troupe
