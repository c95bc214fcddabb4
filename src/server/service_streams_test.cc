// What a stream says while it has no text.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

TEST_F(ServiceTest, AStreamThatWaitsSaysSoAndGetsTheSameText) {
  const std::string ask = std::string(kSay) + R"(,"stream":true})";
  const std::string alone = TextOf(Post("/v1/completions", ask)->body());
  pulse_ = std::chrono::milliseconds(1);
  Open({.sequences = 1});
  const auto first =
      Start("POST", "/v1/completions", R"({"prompt":"a","max_tokens":80,"ignore_eos":true})");
  const auto events = Post("/v1/completions", ask)->body();
  EXPECT_THAT(events, testing::StartsWith(": waiting\n\n"));
  std::string data;
  for (std::size_t at = 0; at < events.size();) {
    const std::size_t end = std::min(events.find("\n\n", at), events.size());
    if (events[at] != ':') data += events.substr(at, end + 2 - at);
    at = end + 2;
  }
  EXPECT_EQ(TextOf(data), alone);
  first->WaitForEnd();
}

TEST_F(ServiceTest, AStreamWhoseTextIsHeldBackIsNotSilent) {
  pulse_ = std::chrono::milliseconds(1);
  Serve(Model::Open(kPath, {.context = 512, .threads = 1, .answer_rules = true}).value());
  // All but the first letter may be the beginning of the stop string, to the end.
  const auto body = fmt::format(
      R"({{"prompt":"x","max_tokens":300,"stream":true,"stop":"{}","grammar":"root ::= \"b\" \"a\"{{400}}"}})",
      std::string(401, 'a'));
  const std::string events = Post("/v1/completions", body)->body();
  const std::size_t first = events.find(R"("text":"b")");
  ASSERT_NE(first, events.npos) << events;
  const std::size_t waiting = events.find(": waiting\n\n", first);
  ASSERT_NE(waiting, events.npos) << events;
  EXPECT_NE(events.find("data: ", waiting), events.npos);
}

TEST_F(ServiceTest, ProgressOfALongPromptIsToldWhereItIsAskedFor) {
  Serve(Model::Open(kPath, {.context = 2048, .threads = 1}).value());
  std::string prompt;  // a token for each digit
  for (int i = 0; i < 130; ++i) prompt += "1234567890";
  for (const auto& [path, text, event] :
       {std::tuple("/v1/completions", R"("prompt":"{}","max_tokens":1)", R"("prompt_progress":{)"),
        std::tuple("/v1/responses", R"("input":"{}","max_output_tokens":1)",
                   R"("prompt_progress":{)"),
        std::tuple("/v1/messages",
                   R"("messages":[{{"role":"user","content":"{}"}}],"max_tokens":1)",
                   R"({"type":"ping","prompt_progress":{)")}) {
    const std::string fields = fmt::format(fmt::runtime(text), std::string(path) + prompt);
    const auto ask = [&, path = path](const char* more) {
      return Post(path, fmt::format(R"({{{},"stream":true{}}})", fields, more))->body();
    };
    EXPECT_THAT(ask(R"(,"return_progress":true)"), HasSubstr(event)) << path;
    EXPECT_THAT(ask(""), testing::Not(HasSubstr("prompt_progress"))) << path;
  }
}

TEST_F(ServiceTest, OneFailingAnswerOfSeveralEndsTheOthers) {
  Serve(Model::Open(kPath, {.context = 4096, .threads = 2, .sequences = 3}).value());
  for (const char* stream : {"false", "true"}) {
    int started = 0;
    served_.start = [&](Request request, Callbacks callbacks) {
      if (++started == 2) {
        request.max_tokens = 3;
        callbacks.on_end = [tell = callbacks.on_end](const Result<Answer>&) {
          tell(Status(Code::kDataLoss, "an expert could not be read"));
        };
      }
      return model().Start(std::move(request), std::move(callbacks));
    };
    const auto before = model().metrics().requests_cancelled;
    const auto reply =
        Post("/v1/completions", std::string(R"({"prompt":"The","n":3,"max_tokens":4000,)") +
                                    R"("ignore_eos":true,"stream":)" + stream + "}");
    EXPECT_EQ(reply->status(), *stream == 't' ? 200 : 500);
    EXPECT_THAT(reply->body(), HasSubstr("an expert could not be read"));
    EXPECT_EQ(model().metrics().requests_cancelled, before + 2) << stream;
  }
}

}  // namespace
}  // namespace troupe
