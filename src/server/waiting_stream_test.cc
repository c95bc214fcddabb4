#include "server/waiting_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/json.h"
#include "server/api_error.h"
#include "server/service_paths.h"

namespace troupe {
namespace {

using testing::ElementsAre;

OpenAiHead HeadOfNine() { return {.id = "resp_9", .model = "m", .created = 7}; }

std::unique_ptr<WaitingStream> WaitingAt(std::string_view endpoint) {
  return MakeWaitingStream(endpoint, HeadOfNine);
}

// Checks that they are numbered, and that each has the name that its data have.
std::vector<Json> ToldIn(std::string_view stream) {
  std::vector<Json> events;
  while (!stream.empty()) {
    const std::string_view event = stream.substr(0, stream.find("\n\n"));
    stream.remove_prefix(event.size() + 2);
    const std::size_t data = event.find("\ndata: ");
    events.push_back(Json::Parse(event.substr(data + 7)).value());
    EXPECT_EQ(event.substr(0, data), "event: " + events.back().Find("type")->AsString());
    EXPECT_EQ(events.back().Find("sequence_number")->AsCount(), events.size() - 1);
  }
  return events;
}

TEST(WaitingStream, AResponseIsCreatedOnceAndQueuedAtEachBeat) {
  const auto stream = WaitingAt(kResponses);
  EXPECT_EQ(stream->told().events, 0u);
  std::string said;
  for (int beat = 0; beat < 3; ++beat) said += stream->Beat();
  std::vector<std::string> types;
  for (const Json& event : ToldIn(said)) {
    types.push_back(event.Find("type")->AsString());
    const Json& response = *event.Find("response");
    EXPECT_EQ(response.Find("id")->AsString(), "resp_9");
    EXPECT_EQ(response.Find("status")->AsString(), "queued");
    EXPECT_EQ(response.Find("output")->size(), 0u);
  }
  EXPECT_THAT(types, ElementsAre("response.created", "response.queued", "response.queued",
                                 "response.queued"));
  EXPECT_EQ(stream->told().events, 4u);
  EXPECT_EQ(stream->told().head.id, "resp_9");
  EXPECT_EQ(stream->told().head.created, 7u);
}

TEST(WaitingStream, AResponseThatIsRefusedFailsAsOneThatHasBegun) {
  for (const auto& [status, error] :
       {std::pair{InvalidArgument("request: n: 0"),
                  R"({"code":"invalid_prompt","message":"request: n: 0"})"},
        {ContextFull("longer than the context"),
         R"({"code":"context_length_exceeded","message":"longer than the context"})"},
        {Status(Code::kUnavailable, "full").WithRetryAfter(2.5),
         R"({"code":"rate_limit_exceeded","message":"full; try again in 3s"})"},
        {Status(Code::kUnavailable, "the server is ending"),
         R"({"code":"server_error","message":"the server is ending"})"},
        {Status(Code::kDeadlineExceeded, "late"),
         R"({"code":"server_is_overloaded","message":"late"})"},
        {Status(Code::kDataLoss, "disk"), R"({"code":"server_error","message":"disk"})"}}) {
    const auto stream = WaitingAt(kResponses);
    std::string said = stream->Beat();
    said += stream->Refused(ErrorResponse(status));
    const Json last = ToldIn(said).back();
    EXPECT_EQ(last.Find("type")->AsString(), "response.failed");
    EXPECT_EQ(last.Find("response")->Find("id")->AsString(), "resp_9");
    EXPECT_EQ(last.Find("response")->Find("status")->AsString(), "failed");
    EXPECT_EQ(last.Find("response")->Find("error")->Dump(), error);
  }
}

TEST(WaitingStream, AMessagePingsAndNumbersNothing) {
  const auto stream = WaitingAt(kMessages);
  EXPECT_EQ(stream->Beat(), "event: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(stream->told().events, 0u);
  EXPECT_EQ(stream->Refused({.status = 400, .body = "{}"}), "event: error\ndata: {}\n\n");
}

TEST(WaitingStream, AChatHasNoEventForItAndIsSentComments) {
  for (const std::string_view endpoint : {kChat, kCompletions, kLlamaCompletion, kInfill}) {
    const auto stream = WaitingAt(endpoint);
    EXPECT_EQ(stream->Beat(), ": the model is being loaded\n\n");
    EXPECT_EQ(stream->Refused({.status = 400, .body = "{}"}), "data: {}\n\ndata: [DONE]\n\n");
  }
}

}  // namespace
}  // namespace troupe
