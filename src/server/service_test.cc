// The endpoints on a small model, without sockets.
#include "server/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/tiny_model_for_test.h"
#include "base/json.h"
#include "server/fake_reply_for_test.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class ServiceTest : public testing::Test {
 protected:
  void Open(ModelOptions options = {}) {
    service_.reset();
    model_.reset();
    model_ = OpenTiny(options);
    service_ = std::make_unique<Service>(*model_, ServiceOptions{.name = "tiny", .sampling = {}});
    router_ = std::make_unique<Router>(AccessRules());
    service_->AddTo(*router_);
  }
  void SetUp() override { Open(); }
  void TearDown() override { model_->Close(); }

  std::shared_ptr<FakeReply> Start(std::string method, std::string path, std::string body = "") {
    auto reply = std::make_shared<FakeReply>();
    router_->Serve({.method = std::move(method), .path = std::move(path), .body = std::move(body)},
                   reply);
    return reply;
  }
  std::shared_ptr<FakeReply> Post(std::string path, std::string body) {
    auto reply = Start("POST", std::move(path), std::move(body));
    reply->WaitForEnd();
    return reply;
  }
  Json PostJson(std::string path, std::string body) {
    return Json::Parse(Post(std::move(path), std::move(body))->body()).value();
  }
  // The text of a stream of completions.
  static std::string TextOf(std::string_view events) {
    std::string text;
    while (!events.empty()) {
      const std::string_view event = events.substr(0, events.find("\n\n"));
      events.remove_prefix(std::min(events.size(), event.size() + 2));
      const auto json = Json::Parse(event.substr(std::string_view("data: ").size()));
      if (!json || json->Find("choices")->size() == 0) continue;
      text += (*json->Find("choices"))[0].Find("text")->AsString();
    }
    return text;
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Router> router_;
};

constexpr const char* kSay =
    R"({"prompt":"The kernel","max_tokens":12,"temperature":0.9,"seed":5,"ignore_eos":true)";

TEST_F(ServiceTest, AnswersAsTheModelAnswersTheSameRequest) {
  Request request = Ask("The kernel", 12, 5);
  request.sampling.temperature = 0.9;
  request.ignore_end = true;
  const Answer alone = model_->Start(request)->Wait().value();
  const Json body = PostJson("/v1/completions", std::string(kSay) + "}");
  EXPECT_EQ((*body.Find("choices"))[0].Find("text")->AsString(), alone.text);
  EXPECT_EQ(body.Find("usage")->Find("completion_tokens")->AsCount(), 12u);
}

TEST_F(ServiceTest, AStreamSaysTheSameAsAWholeAnswer) {
  const Json whole = PostJson("/v1/completions", std::string(kSay) + "}");
  const std::string events =
      Post("/v1/completions", std::string(kSay) + R"(,"stream":true})")->body();
  EXPECT_EQ(TextOf(events), (*whole.Find("choices"))[0].Find("text")->AsString());
  EXPECT_THAT(events, EndsWith("data: [DONE]\n\n"));
}

TEST_F(ServiceTest, AnswersOfOneRequestHaveSeedsOfTheirOwn) {
  const Json three = PostJson("/v1/completions", std::string(kSay) + R"(,"n":3})");
  const Json& choices = *three.Find("choices");
  ASSERT_EQ(choices.size(), 3u);
  const Json second = PostJson(
      "/v1/completions",
      R"({"prompt":"The kernel","max_tokens":12,"temperature":0.9,"seed":6,"ignore_eos":true})");
  EXPECT_EQ(choices[1].Find("text")->AsString(),
            (*second.Find("choices"))[0].Find("text")->AsString());
  EXPECT_NE(choices[0].Find("text")->AsString(), choices[1].Find("text")->AsString());
}

TEST_F(ServiceTest, LogprobsAreOfEveryTokenAndNeverAboveZero) {
  const Json body = PostJson("/v1/completions", std::string(kSay) + R"(,"logprobs":3})");
  const Json& logprobs = *(*body.Find("choices"))[0].Find("logprobs");
  EXPECT_EQ(logprobs.Find("tokens")->size(), 12u);
  double before = 0;
  for (const Json& top : logprobs.Find("top_logprobs")->items()) {
    EXPECT_EQ(top.size(), 3u);
    before = 0;
    for (const Json::Member& other : top.members()) {
      EXPECT_LE(other.value.AsDouble(), before);
      before = other.value.AsDouble();
    }
  }
}

TEST_F(ServiceTest, AStreamsLogprobsAreThoseOfTheWholeAnswer) {
  const Json whole = PostJson("/v1/completions", std::string(kSay) + R"(,"logprobs":1})");
  const std::string events =
      Post("/v1/completions", std::string(kSay) + R"(,"logprobs":1,"stream":true})")->body();
  std::vector<std::string> tokens;
  std::string_view rest = events;
  while (!rest.empty()) {
    const std::string_view event = rest.substr(0, rest.find("\n\n"));
    rest.remove_prefix(std::min(rest.size(), event.size() + 2));
    const auto json = Json::Parse(event.substr(6));
    if (!json) continue;
    const Json& logprobs = *(*json->Find("choices"))[0].Find("logprobs");
    if (logprobs.IsNull()) continue;
    for (const Json& token : logprobs.Find("tokens")->items()) tokens.push_back(token.AsString());
  }
  const Json& all = *(*whole.Find("choices"))[0].Find("logprobs")->Find("tokens");
  ASSERT_EQ(tokens.size(), all.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(tokens[i], all[i].AsString());
}

TEST_F(ServiceTest, AnAnswerSaysHowMuchOfItsPromptWasCached) {
  const auto cached = [&](const Json& body) {
    return body.Find("usage")->Find("prompt_tokens_details")->Find("cached_tokens")->AsCount();
  };
  const Json first = PostJson("/v1/completions", std::string(kSay) + "}");
  EXPECT_EQ(cached(first), 0u);
  const Json again = PostJson("/v1/completions", std::string(kSay) + "}");
  const std::uint64_t prompt = again.Find("usage")->Find("prompt_tokens")->AsCount();
  EXPECT_EQ(cached(again), prompt - 1);
  EXPECT_EQ((*first.Find("choices"))[0].Find("text")->AsString(),
            (*again.Find("choices"))[0].Find("text")->AsString());
  const std::string page = Start("GET", "/metrics")->body();
  EXPECT_THAT(page, HasSubstr("troupe_prefix_cache_hits_total 1\n"));
  EXPECT_THAT(
      page, HasSubstr("troupe_tokens_total{kind=\"cached\"} " + std::to_string(prompt - 1) + "\n"));
}

TEST_F(ServiceTest, AClientWhoLeavesCancelsItsAnswer) {
  const auto reply = Start("POST", "/v1/completions",
                           R"({"prompt":"a","max_tokens":90,"ignore_eos":true,"stream":true})");
  reply->WaitFor("data: ");
  reply->Leave();
  while (model_->metrics().requests_cancelled + model_->metrics().requests_finished == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"b","max_tokens":1})")->status(), 200);
}

TEST_F(ServiceTest, WhoIsRefusedIsToldWhyAndCounted) {
  EXPECT_EQ(Post("/v1/completions", "{")->status(), 400);
  EXPECT_EQ(Post("/v1/chat/completions", "{}")->status(), 400);
  const std::string many(3000, 'x');
  const auto too_long = Post("/v1/completions", R"({"prompt":")" + many + R"("})");
  EXPECT_EQ(too_long->status(), 400);
  EXPECT_THAT(too_long->body(), HasSubstr("context"));
  const std::string page = Start("GET", "/metrics")->body();
  EXPECT_THAT(page,
              HasSubstr(R"(troupe_requests_total{endpoint="/v1/completions",status="400"} 2)"));
  EXPECT_THAT(page, HasSubstr(R"(troupe_answers_total{end="refused"} 1)"));
}

TEST_F(ServiceTest, AFullQueueSaysWhenToComeAgain) {
  Open({.queue = 0});
  const auto first = Start("POST", "/v1/completions",
                           R"({"prompt":"a","max_tokens":90,"ignore_eos":true,"stream":true})");
  first->WaitFor("data: ");
  const auto second = Post("/v1/completions", R"({"prompt":"b","max_tokens":1})");
  if (second->status() != 200) {  // the first may have ended by now
    EXPECT_EQ(second->status(), 429);
    EXPECT_NE(HeaderOf(second->head().headers, "retry-after"), "");
  }
  first->WaitForEnd();
}

TEST_F(ServiceTest, AnthropicsMessagesAreAnsweredCountedAndStreamed) {
  const std::string ask =
      R"({"max_tokens":8,"ignore_eos":true,"seed":3,"messages":[{"role":"user","content":"Hello"}])";
  const Json whole = PostJson("/v1/messages", ask + "}");
  EXPECT_EQ(whole.Find("type")->AsString(), "message");
  EXPECT_EQ(whole.Find("usage")->Find("output_tokens")->AsCount(), 8u);
  EXPECT_EQ(whole.Find("stop_reason")->AsString(), "max_tokens");
  const Json count = PostJson("/v1/messages/count_tokens", ask + "}");
  EXPECT_EQ(*count.Find("input_tokens"), *whole.Find("usage")->Find("input_tokens"));
  const std::string stream = Post("/v1/messages", ask + R"(,"stream":true})")->body();
  EXPECT_THAT(stream, testing::StartsWith("event: message_start\n"));
  EXPECT_THAT(stream, EndsWith("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
  EXPECT_THAT(Post("/v1/messages", "{}")->body(), HasSubstr(R"({"type":"error")"));
}

TEST_F(ServiceTest, MoreAnswersThanThereIsRoomForAreRefusedAsOne) {
  Open({.queue = 1});
  for (const char* stream : {"false", "true"}) {
    const auto reply = Post("/v1/completions",
                            std::string(R"({"prompt":["a","b","c","d","e","f"],"max_tokens":80,)"
                                        R"("ignore_eos":true,"stream":)") +
                                stream + "}");
    if (reply->status() == 200) {  // a stream that had begun
      EXPECT_THAT(reply->body(), HasSubstr(R"("error")"));
    } else {
      EXPECT_EQ(reply->status(), 429);
    }
  }
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"b","max_tokens":1})")->status(), 200);
}

TEST_F(ServiceTest, UsageCountsEachPromptOnce) {
  const Json two =
      PostJson("/v1/completions", R"({"prompt":["The kernel","One"],"n":2,"max_tokens":1})");
  const auto tokens = [&](const char* prompt) {
    return PostJson("/tokenize", std::string(R"({"content":")") + prompt + "\"}")
        .Find("tokens")
        ->size();
  };
  EXPECT_EQ(two.Find("usage")->Find("prompt_tokens")->AsCount(),
            tokens("The kernel") + tokens("One"));
}

TEST_F(ServiceTest, TheSeedOfAnAnswerIsToldAndGivesItAgain) {
  const std::string ask = R"({"prompt":"The kernel","max_tokens":8,"ignore_eos":true)";
  const Json first = PostJson("/v1/completions", ask + "}");
  const std::uint64_t seed = first.Find("troupe")->Find("seed")->AsCount();
  const Json again = PostJson("/v1/completions", ask + R"(,"seed":)" + std::to_string(seed) + "}");
  EXPECT_EQ((*first.Find("choices"))[0].Find("text")->AsString(),
            (*again.Find("choices"))[0].Find("text")->AsString());
}

TEST_F(ServiceTest, TokensAndTextsAreTurnedIntoEachOther) {
  const Json tokens = PostJson("/tokenize", R"({"content":"The kernel"})");
  const Json text = PostJson("/detokenize", Json{{"tokens", *tokens.Find("tokens")}}.Dump());
  EXPECT_EQ(text.Find("content")->AsString(), "The kernel");
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[1000000]})")->status(), 400);
  EXPECT_EQ(Post("/tokenize", R"({"content":5})")->status(), 400);
}

TEST_F(ServiceTest, TellsOfItsModelAndHealth) {
  EXPECT_THAT(Start("GET", "/v1/models")->body(), HasSubstr(R"("id":"tiny")"));
  EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(R"("context":96)"));
  EXPECT_EQ(Start("GET", "/health")->status(), 200);
}

TEST_F(ServiceTest, MetricsTellWhatTheModelDid) {
  Post("/v1/completions", std::string(kSay) + "}");
  const std::string page = Start("GET", "/metrics")->body();
  EXPECT_THAT(page, HasSubstr("troupe_tokens_total{kind=\"generated\"} 12\n"));
  EXPECT_THAT(page, HasSubstr("troupe_request_seconds_count 1\n"));
  EXPECT_THAT(page, HasSubstr("troupe_memory_plan_bytes{part=\"experts\"}"));
}

TEST_F(ServiceTest, WhoeverWatchesIsToldOfTheModelAndThenOfWhatItDoes) {
  const auto watcher = Start("GET", "/live");
  watcher->WaitFor("event: state");
  EXPECT_EQ(watcher->head().content_type, "text/event-stream");
  const std::string events = watcher->body();
  EXPECT_THAT(events, testing::StartsWith("event: facts\ndata: {\"model\":\"tiny\""));
  const std::size_t begin = events.find("data: ", events.find("event: state")) + 6;
  const Json state = Json::Parse(events.substr(begin, events.find('\n', begin) - begin)).value();
  EXPECT_EQ(state.Find("experts")->Find("places")->size(), 8u);
  EXPECT_EQ((*state.Find("experts")->Find("places"))[0].AsString(), std::string(32, '2'));
  service_->EndWatching();
  watcher->WaitForEnd();
  const auto late = Start("GET", "/live");
  late->WaitForEnd();
  EXPECT_EQ(late->status(), 503);
}

TEST_F(ServiceTest, AskingWhetherThereIsAStreamBeginsNone) {
  const auto reply = Start("HEAD", "/live");
  reply->WaitForEnd();
  EXPECT_EQ(reply->status(), 200);
  EXPECT_EQ(reply->body(), "");
}

TEST_F(ServiceTest, ThePageIsForAllAndItsStreamForThoseWithAKey) {
  Router keyed(AccessRules{.keys = {"secret"}});
  service_->AddTo(keyed);
  const auto page = std::make_shared<FakeReply>(), stream = std::make_shared<FakeReply>();
  keyed.Serve({.method = "GET", .path = "/"}, page);
  EXPECT_EQ(page->status(), 200);
  EXPECT_THAT(page->body(), HasSubstr("<title>Troupe</title>"));
  keyed.Serve({.method = "GET", .path = "/live"}, stream);
  EXPECT_EQ(stream->status(), 401);
}

class ToolServiceTest : public ServiceTest {
 protected:
  void SetUp() override {
    model_ = Model::Open(kPath, {.context = 2048, .threads = 2, .answer_rules = true}).value();
    service_ = std::make_unique<Service>(*model_, ServiceOptions{.name = "tiny", .sampling = {}});
    router_ = std::make_unique<Router>(AccessRules());
    service_->AddTo(*router_);
  }
  static std::string Body(const std::string& fields, int seed, bool stream = false) {
    return fmt::format(R"({{"seed":{},"temperature":1.2,"stream":{},{}}})", seed, stream, fields);
  }
  static void ExpectArguments(const Json& arguments) {
    EXPECT_LE(arguments.Find("size")->AsCount(), 9u);
    const std::string colour = arguments.Find("colour")->AsString();
    EXPECT_TRUE(colour == "red" || colour == "green") << colour;
  }
};

constexpr const char* kThing =
    R"({"type":"object","properties":{"size":{"type":"integer","minimum":1,"maximum":9},)"
    R"("colour":{"enum":["red","green"]}},"required":["size","colour"],"additionalProperties":false})";

TEST_F(ToolServiceTest, ACallThatIsRequiredComesAsItsSchemaSays) {
  const std::string fields = fmt::format(
      R"("max_tokens":200,"messages":[{{"role":"user","content":"Paint!"}}],"tool_choice":"required",)"
      R"("parallel_tool_calls":false,"tools":[{{"type":"function","function":{{"name":"paint",)"
      R"("parameters":{}}}}}])",
      kThing);
  for (int seed = 0; seed < 6; ++seed) {
    const Json body = PostJson("/v1/chat/completions", Body(fields, seed));
    const Json& choice = (*body.Find("choices"))[0];
    EXPECT_EQ(choice.Find("finish_reason")->AsString(), "tool_calls");
    const Json& call = (*choice.Find("message")->Find("tool_calls"))[0];
    EXPECT_EQ(call.Find("function")->Find("name")->AsString(), "paint");
    ExpectArguments(*Json::Parse(call.Find("function")->Find("arguments")->AsString()));
  }
}

TEST_F(ToolServiceTest, ResponsesAndMessagesForceCallsToo) {
  const std::string responses = fmt::format(
      R"("max_output_tokens":200,"input":"Paint!","tool_choice":{{"type":"function","name":"paint"}},)"
      R"("parallel_tool_calls":false,"tools":[{{"type":"function","name":"paint","parameters":{}}}])",
      kThing);
  const std::string messages =
      fmt::format(R"("max_tokens":200,"messages":[{{"role":"user","content":"Paint!"}}],)"
                  R"("tool_choice":{{"type":"any","disable_parallel_tool_use":true}},)"
                  R"("tools":[{{"name":"paint","input_schema":{}}}])",
                  kThing);
  for (int seed = 0; seed < 4; ++seed) {
    const Json response = PostJson("/v1/responses", Body(responses, seed));
    EXPECT_EQ(response.Find("status")->AsString(), "completed");
    ExpectArguments(*Json::Parse((*response.Find("output"))[0].Find("arguments")->AsString()));
    const Json message = PostJson("/v1/messages", Body(messages, seed));
    EXPECT_EQ(message.Find("stop_reason")->AsString(), "tool_use");
    ExpectArguments(*(*message.Find("content"))[0].Find("input"));
  }
  EXPECT_THAT(Post("/v1/responses", Body(responses, 1, true))->body(),
              HasSubstr("event: response.function_call_arguments.done"));
  EXPECT_THAT(Post("/v1/messages", Body(messages, 1, true))->body(),
              HasSubstr(R"("type":"input_json_delta")"));
}

TEST_F(ToolServiceTest, EventsOfAStreamAreNumberedInTheirOrder) {
  const std::string stream =
      Post("/v1/responses", R"({"input":"Hi","max_output_tokens":5,"stream":true})")->body();
  std::size_t at = 0;
  for (int number = 0; number < 6; ++number) {
    at = stream.find(fmt::format(R"("sequence_number":{},)", number), at);
    ASSERT_NE(at, stream.npos) << number << "\n" << stream;
  }
}

TEST_F(ToolServiceTest, TheResultOfACallIsReadBeforeTheNextAnswer) {
  const auto body = Post("/v1/chat/completions", R"({"max_tokens":5,"messages":[
      {"role":"user","content":"Paint!"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function",
        "function":{"name":"paint","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"c","content":"done"}]})");
  EXPECT_EQ(body->status(), 200) << body->body();
}

TEST_F(ToolServiceTest, AnAnswerThatIsBegunIsGoneOnWith) {
  const auto count = [&](const char* more) {
    return PostJson("/v1/messages/count_tokens",
                    fmt::format(R"({{"messages":[{{"role":"user","content":"a"}}{}]}})", more))
        .Find("input_tokens")
        ->AsCount();
  };
  EXPECT_GT(count(R"(,{"role":"assistant","content":"It is"})"), count(""));
}

}  // namespace
}  // namespace troupe
