// The endpoints, and what is counted of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST_F(ServiceTest, AnswersAsTheModelAnswersTheSameRequest) {
  Request request = Ask("The kernel", 12, 5);
  request.sampling.temperature = 0.9;
  request.ignore_end = true;
  const Answer alone = model().Start(request)->Wait().value();
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
  while (model().metrics().requests_cancelled + model().metrics().requests_finished == 0) {
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

TEST_F(ServiceTest, APromptThatIsTooLongIsToldAsClientsOfEachApiKnowIt) {
  std::string letters;
  for (int i = 0; i < 300; ++i) letters += fmt::format("{} ", i);
  const std::string turn =
      R"({"max_tokens":1,"messages":[{"role":"user","content":")" + letters + R"("}])";
  const std::string read =
      PostJson("/v1/messages/count_tokens", turn + "}").Find("input_tokens")->Dump();
  for (const char* stream : {"", R"(,"stream":true)"}) {
    const auto claude = Post("/v1/messages", turn + stream + "}");
    EXPECT_EQ(claude->status(), 400);
    EXPECT_THAT(claude->body(), HasSubstr(R"("type":"invalid_request_error")"));
    EXPECT_THAT(claude->body(), HasSubstr("prompt is too long: " + read + " tokens > 96 maximum"));
    const auto chat = Post("/v1/chat/completions", turn + stream + "}");
    EXPECT_EQ(chat->status(), 400);
    EXPECT_THAT(chat->body(), HasSubstr(R"("code":"context_length_exceeded")"));
    EXPECT_THAT(chat->body(), testing::ContainsRegex("maximum context length is 96 tokens. "
                                                     "However, .* " +
                                                     read + " tokens"));
  }
  const Json tokens =
      *PostJson("/tokenize", R"({"add_special":true,"content":")" + letters + "\"}").Find("tokens");
  EXPECT_THAT(Post("/v1/completions", R"({"prompt":")" + letters + "\"}")->body(),
              HasSubstr(fmt::format("resulted in {} tokens", tokens.size())));
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_answers_total{end="refused"} 5)"));
}

TEST_F(ServiceTest, TheLogIsToldTheModelAndTheTokensOfAnAnswer) {
  for (const char* stream : {"", R"(,"stream":true)"}) {
    const HttpUse use = Post("/v1/completions", std::string(kSay) + stream + "}")->use();
    EXPECT_EQ(use.model, "tiny");
    EXPECT_GT(use.prompt_tokens, 0u);
    EXPECT_EQ(use.answer_tokens, 12u);
  }
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
  const Json again = PostJson("/v1/messages", ask + "}");
  EXPECT_EQ(again.Find("usage")->Find("input_tokens")->AsCount(), 1u);
  EXPECT_EQ(again.Find("usage")->Find("cache_read_input_tokens")->AsCount() + 1,
            count.Find("input_tokens")->AsCount());
  const std::string stream = Post("/v1/messages", ask + R"(,"stream":true})")->body();
  EXPECT_THAT(stream, testing::StartsWith("event: message_start\n"));
  EXPECT_THAT(stream, EndsWith("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
  EXPECT_THAT(Post("/v1/messages", "{}")->body(), HasSubstr(R"({"type":"error")"));
}

TEST_F(ServiceTest, AClientThatLeftBeforeItsRequestBeganIsCounted) {
  auto reply = std::make_shared<FakeReply>();
  reply->Leave();
  router_->Serve({.method = "POST", .path = "/v1/completions", .body = std::string(kSay) + "}"},
                 reply);
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/v1/completions",status="499"} 1)"));
}

TEST_F(ServiceTest, EmbeddingsThatFindTheQueueFullGoOnWhenItIsNot) {
  pooling_ = Pooling::kLast;
  Open({.sequences = 2, .queue = 1});
  const std::string ask = R"({"input":["one","two","three","four","five","six"]})";
  const std::string alone = Post("/v1/embeddings", ask)->body();
  const std::string long_one = R"({"prompt":"a","max_tokens":80,"ignore_eos":true})";
  const auto first = Start("POST", "/v1/completions", long_one),
             second = Start("POST", "/v1/completions", long_one);
  EXPECT_EQ(Post("/v1/embeddings", ask)->body(), alone);
  first->WaitForEnd();
  second->WaitForEnd();
}

TEST_F(ServiceTest, AModelThatWasNotMadeForItMakesNoEmbeddingsUnasked) {
  const auto reply = Post("/v1/embeddings", R"({"input":"a"})");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("--pooling"));
}

TEST_F(ServiceTest, EmbeddingsAreTheSameAloneAndAmongMoreThanTheQueueTakes) {
  pooling_ = Pooling::kMean;
  Open({.sequences = 2, .queue = 1});
  std::string inputs;
  std::vector<std::string> alone;
  for (int i = 0; i < 20; ++i) {
    const std::string input = fmt::format("\"{} kernels\"", i % 10);
    inputs += (i > 0 ? "," : "") + input;
    const Json one = PostJson("/v1/embeddings", "{\"input\":" + input + "}");
    alone.push_back((*one.Find("data"))[0].Find("embedding")->Dump());
  }
  const Json all = PostJson("/v1/embeddings", "{\"input\":[" + inputs + "]}");
  ASSERT_EQ(all.Find("data")->size(), 20u) << all.Dump();
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ((*all.Find("data"))[i].Find("embedding")->Dump(), alone[i]);
  }
  EXPECT_NE(alone[0], alone[1]);
  // One input that cannot be read refuses the rest.
  const auto refused =
      Post("/v1/embeddings", R"({"input":["a","",")" + std::string(400, 'b') + "\"]}");
  EXPECT_EQ(refused->status(), 400) << refused->body();
}

TEST_F(ServiceTest, EmbeddingsAreAllEncodedBeforeTheFirstIsComputed) {
  pooling_ = Pooling::kMean;
  Open({.sequences = 1});
  const auto refused =
      Post("/v1/embeddings", R"({"input":["a","b",")" + std::string(400, 'b') + "\"]}");
  EXPECT_EQ(refused->status(), 400);
  EXPECT_THAT(refused->body(), AllOf(HasSubstr("input[2]"), HasSubstr("context_length_exceeded")));
  EXPECT_EQ(model().metrics().passes, 0u);
}

TEST_F(ServiceTest, AModelWithoutMarksForAGapRefusesASuffixByItsName) {
  const Json answer = PostJson("/v1/completions", R"({"prompt":"a","suffix":"b"})");
  EXPECT_EQ(answer.Find("error")->Find("param")->AsString(), "suffix");
}

TEST_F(ServiceTest, MoreAnswersThanTheQueueTakesAreGivenAsPlacesBecomeFree) {
  const std::string ask =
      R"({"prompt":["a","b","c"],"n":4,"max_tokens":20,"seed":3,"ignore_eos":true)";
  Open({.sequences = 4, .queue = 64});
  const std::string expected = PostJson("/v1/completions", ask + "}").Find("choices")->Dump();
  Open({.queue = 1});
  EXPECT_EQ(PostJson("/v1/completions", ask + "}").Find("choices")->Dump(), expected);
  const std::string stream = Post("/v1/completions", ask + R"(,"stream":true})")->body();
  EXPECT_THAT(stream, testing::Not(HasSubstr(R"("error")")));
  EXPECT_THAT(stream,
              HasSubstr(R"("index":11,"text":"","logprobs":null,"finish_reason":"length")"));
}

TEST_F(ServiceTest, AnAnswersTimeoutCountsTheTimeInWhichItsFellowsWentFirst) {
  Open({.queue = 0});
  const auto reply =
      Post("/v1/completions",
           R"({"prompt":"a","n":128,"max_tokens":90,"ignore_eos":true,"timeout":0.05})");
  EXPECT_EQ(reply->status(), 504) << reply->body();
}

TEST_F(ServiceTest, UsageCountsEachPromptOnce) {
  const Json two =
      PostJson("/v1/completions", R"({"prompt":["The kernel","One"],"n":2,"max_tokens":1})");
  const auto tokens = [&](const char* prompt) {
    return PostJson("/tokenize", std::string(R"({"add_special":true,"content":")") + prompt + "\"}")
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
  EXPECT_THAT(Start("GET", "/v1/models")->body(), HasSubstr(R"("models":[])"));  // Codex's
  EXPECT_THAT(Start("GET", "/v1/models/tiny")->body(), HasSubstr(R"({"id":"tiny")"));
  EXPECT_EQ(Start("GET", "/v1/models/other")->status(), 404);
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/v1/models/*",status="404"} 1)"));
  for (const char* field : {R"("total_slots":1,)", R"("chat_template":)", R"("n_ctx":96)"}) {
    EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(field));
  }
  EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(R"("context":96)"));
  EXPECT_EQ(Start("GET", "/health")->status(), 200);
  EXPECT_EQ(Start("GET", "/cluster")->status(), 404);
  EXPECT_EQ(Start("GET", "/cluster/plan")->status(), 404);
  EXPECT_THAT(Start("GET", "/cluster")->body(), HasSubstr("of no cluster"));
}

TEST_F(ServiceTest, MetricsTellWhatTheModelDid) {
  Post("/v1/completions", std::string(kSay) + "}");
  const std::string page = Start("GET", "/metrics")->body();
  EXPECT_THAT(page, HasSubstr("troupe_tokens_total{kind=\"generated\"} 12\n"));
  EXPECT_THAT(page, HasSubstr("troupe_request_seconds_count 1\n"));
  EXPECT_THAT(
      page,
      HasSubstr("troupe_pass_rows_bucket{le=\"1\"} 11\n"));  // the first token is the prompt's
  EXPECT_THAT(page, HasSubstr("troupe_kv_pages{state=\"prefix_cache\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("troupe_memory_plan_bytes{part=\"experts\"}"));
}

TEST_F(ServiceTest, MetricsCountRequestsOfEveryEndpointByTheirOutcome) {
  Post("/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"a"}]})");
  Post("/v1/messages/count_tokens", "{}");
  Post("/tokenize", R"({"content":"a"})");
  Post("/tokenize", R"({"content":5})");
  Post("/detokenize", R"({"tokens":[1]})");
  Post("/detokenize", R"({"tokens":[1000000]})");
  Start("GET", "/v1/models");
  Start("GET", "/models");
  Start("GET", "/props");
  Start("GET", "/health");
  Start("GET", "/");
  Start("HEAD", "/live");
  Start("GET", "/v1/none");
  Start("GET", "/etc/passwd");
  Start("PUT", "/completions");
  Start("GET", "/metrics");
  const std::string page = Start("GET", "/metrics")->body();
  for (const char* counted :
       {R"("/v1/messages/count_tokens",status="200"} 1)",
        R"("/v1/messages/count_tokens",status="400"} 1)", R"("/tokenize",status="200"} 1)",
        R"("/tokenize",status="400"} 1)", R"("/detokenize",status="200"} 1)",
        R"("/detokenize",status="400"} 1)", R"("/v1/models",status="200"} 2)",
        R"("/props",status="200"} 1)", R"("/health",status="200"} 1)", R"("/",status="200"} 1)",
        R"("/live",status="200"} 1)", R"("other",status="404"} 2)",
        R"("/v1/completions",status="405"} 1)", R"("/metrics",status="200"} 1)"}) {
    EXPECT_THAT(page, HasSubstr(std::string("troupe_requests_total{endpoint=") + counted + "\n"));
  }
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

}  // namespace
}  // namespace troupe
