// Requests while the model is replaced by another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "server/service_for_test.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class ReloadServiceTest : public ServiceTest {
 protected:
  void Park(std::size_t most = 8) {
    service_->Park({.places = most, .retry_seconds = 3}, /*together=*/2);
  }
  // Gives the model up, and its memory.
  void Close() {
    ASSERT_TRUE(service_->WaitUntilUnused(std::chrono::minutes(1)));
    served_.model->Close();
    served_ = {};
  }
  void OpenNext(std::string name) {
    served_ = {.model = OpenTiny({.sequences = 2}), .options = {.name = name, .sampling = {}}};
    service_->Reopen(served_);
  }
  static std::string ModelIn(const std::shared_ptr<FakeReply>& reply) {
    return Json::Parse(reply->body())->Find("model")->AsString();
  }
};

TEST_F(ReloadServiceTest, ARequestUnderWayEndsOnItsModelAndTheNextWaitsForTheOther) {
  const Json alone = PostJson("/v1/completions", std::string(kSay) + "}");
  const std::string text((*alone.Find("choices"))[0].Find("text")->AsString());
  const auto under_way = Start("POST", "/v1/completions", std::string(kSay) + R"(,"stream":true})");
  Park();
  const auto parked = Start("POST", "/v1/completions", std::string(kSay) + "}");
  Close();
  under_way->WaitForEnd();
  EXPECT_EQ(TextOf(under_way->body()), text);
  EXPECT_THAT(under_way->body(), HasSubstr(R"("model":"tiny")"));
  EXPECT_EQ(parked->status(), 0);
  OpenNext("next");
  parked->WaitForEnd();
  EXPECT_EQ(ModelIn(parked), "next");
  EXPECT_EQ((*Json::Parse(parked->body())->Find("choices"))[0].Find("text")->AsString(), text);
}

TEST_F(ReloadServiceTest, EveryPathThatNeedsTheModelWaitsAndNoneThatTellsOfIt) {
  Park();
  Close();
  std::vector<std::shared_ptr<FakeReply>> parked;
  for (const auto& [path, body] : std::initializer_list<std::pair<const char*, const char*>>{
           {"/v1/completions", R"({"prompt":"a","max_tokens":1})"},
           {"/v1/chat/completions",
            R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1})"},
           {"/v1/responses", R"({"input":"a","max_output_tokens":1})"},
           {"/v1/messages", R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1})"},
           {"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"a"}]})"},
           {"/tokenize", R"({"content":"a"})"},
           {"/detokenize", R"({"tokens":[1]})"}}) {
    parked.push_back(Start("POST", path, body));
    EXPECT_EQ(parked.back()->status(), 0) << path;
  }
  EXPECT_THAT(Start("GET", "/v1/models")->body(), HasSubstr(R"("id":"tiny")"));
  EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(R"("context":96)"));
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr("troupe_requests_now{state=\"parked\"} 7\n"));
  OpenNext("next");
  for (const auto& reply : parked) {
    reply->WaitForEnd();
    EXPECT_EQ(reply->status(), 200) << reply->body();
  }
  EXPECT_THAT(Start("GET", "/v1/models")->body(), HasSubstr(R"("id":"next")"));
  EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(R"("sequences":2)"));
}

TEST_F(ReloadServiceTest, AStreamThatIsParkedIsNotSilent) {
  const std::string ask = std::string(kSay) + R"(,"stream":true})";
  const std::string alone = TextOf(Post("/v1/completions", ask)->body());
  pulse_ = std::chrono::milliseconds(1);
  Open();
  Park();
  Close();
  const auto stream = Start("POST", "/v1/completions", ask);
  const auto wrong = Start("POST", "/v1/messages", R"({"stream":true,"messages":[]})");
  const auto whole = Start("POST", "/v1/completions", std::string(kSay) + "}");
  stream->WaitFor(": the model is being loaded\n\n: the model is being loaded\n\n");
  wrong->WaitFor("event: ping\n");
  EXPECT_EQ(whole->status(), 0);
  OpenNext("next");
  for (const auto& reply : {stream, wrong, whole}) reply->WaitForEnd();
  EXPECT_EQ(stream->status(), 200);
  const std::string events = stream->body();
  EXPECT_EQ(TextOf(events.substr(events.find("data: "))), alone);
  EXPECT_THAT(wrong->body(), HasSubstr("event: error\ndata: {\"type\":\"error\""));
  EXPECT_EQ(whole->status(), 200);
}

TEST_F(ReloadServiceTest, AParkedResponseIsOneStreamOfNumberedEventsWhoeverTellsThem) {
  const std::string ask = R"({"input":"a","max_output_tokens":4,"seed":1,"stream":true,)"
                          R"("ignore_eos":true,"instructions":"Be brief.")";
  pulse_ = std::chrono::milliseconds(1);
  Open();
  Park();
  Close();
  const auto good = Start("POST", "/v1/responses", ask + "}");
  const auto wrong = Start("POST", "/v1/responses", ask + R"(,"background":true})");
  const auto late = Start("POST", "/v1/responses", ask + R"(,"timeout":1})");
  for (const auto& reply : {good, wrong, late}) {
    reply->WaitFor("\"type\":\"response.queued\",\"sequence_number\":2");
  }
  late->WaitForEnd();
  OpenNext("next");
  for (const auto& [reply, end] : {std::pair{good, "response.incomplete"},
                                   {wrong, "response.failed"},
                                   {late, "response.failed"}}) {
    reply->WaitForEnd();
    const std::string stream = reply->body();
    std::set<std::string> ids;
    std::size_t created = 0, number = 0;
    Json last;
    for (std::size_t at = stream.find("data: "); at != stream.npos;
         at = stream.find("data: ", at + 1)) {
      last = Json::Parse(stream.substr(at + 6, stream.find("\n\n", at) - at - 6)).value();
      EXPECT_EQ(last.Find("sequence_number")->AsCount(), number++) << stream;
      if (last.Find("type")->AsString() == "response.created") ++created;
      if (last.Find("response") != nullptr) {
        ids.insert(std::string(last.Find("response")->Find("id")->AsString()));
      }
    }
    EXPECT_EQ(created, 1u) << stream;
    EXPECT_EQ(ids.size(), 1u) << stream;
    EXPECT_EQ(last.Find("type")->AsString(), end) << stream;
  }
  EXPECT_THAT(good->body(), HasSubstr(R"("model":"next")"));
  EXPECT_THAT(wrong->body(), HasSubstr("background"));
  EXPECT_THAT(late->body(), HasSubstr("server_is_overloaded"));
}

TEST_F(ReloadServiceTest, AParkedRequestEndsAtItsOwnTimeOrAtThatOfTheServer) {
  served_.options.most_parked = std::chrono::milliseconds(300);
  service_->Adopt(served_.options);
  Park();
  Close();
  const auto late = Start("POST", "/v1/completions", std::string(kSay) + R"(,"timeout":0.01})");
  const auto waits = Start("POST", "/v1/messages",
                           R"({"messages":[{"role":"user","content":"a"}],"max_tokens":1})");
  late->WaitForEnd();
  EXPECT_EQ(late->status(), 504);
  EXPECT_THAT(late->body(), HasSubstr("timeout"));
  waits->WaitForEnd();
  EXPECT_EQ(waits->status(), 503);
  EXPECT_THAT(waits->body(), HasSubstr(R"("type":"overloaded_error")"));
  EXPECT_EQ(service_->gate().parked(), 0u);
  served_.options.most_time = std::chrono::milliseconds(10);
  service_->Adopt(served_.options);
  EXPECT_EQ(Post("/v1/completions", std::string(kSay) + R"(,"timeout":60})")->status(), 504);
  const std::string metrics = Start("GET", "/metrics")->body();
  for (const auto& [endpoint, status, count] :
       {std::tuple("/v1/completions", 504, 2), {"/v1/messages", 503, 1}}) {
    EXPECT_THAT(metrics,
                HasSubstr(fmt::format("troupe_requests_total{{endpoint=\"{}\",status=\"{}\"}} {}\n",
                                      endpoint, status, count)));
  }
  OpenNext("next");
}

TEST_F(ReloadServiceTest, HealthSaysThatAModelIsLoadedOnlyWhileThereIsNone) {
  Park();
  EXPECT_EQ(Start("GET", "/health")->status(), 200);
  Close();
  const auto health = Start("GET", "/health");
  EXPECT_EQ(health->status(), 503);
  EXPECT_EQ(health->body(), R"({"status":"loading model"})");
  OpenNext("next");
  EXPECT_EQ(Start("GET", "/health")->status(), 200);
}

TEST_F(ReloadServiceTest, ATimeoutCountsTheTimeInWhichARequestWasParked) {
  Park();
  const auto reply =
      Start("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1,"timeout":0.001})");
  Close();
  OpenNext("next");  // which takes longer than that
  reply->WaitForEnd();
  EXPECT_EQ(reply->status(), 504) << reply->body();
}

TEST_F(ReloadServiceTest, WhoFindsTooManyParkedMayComeAgain) {
  Park(1);
  Close();
  const auto left = Start("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1})");
  const auto refused = Post("/v1/messages", "{}");
  EXPECT_EQ(refused->status(), 429);
  EXPECT_EQ(HeaderOf(refused->head().headers, "retry-after"), "3");
  EXPECT_THAT(refused->body(), HasSubstr(R"({"type":"error")"));
  left->Leave();
  const auto parked = Start("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1})");
  EXPECT_EQ(parked->status(), 0);
  OpenNext("next");
  parked->WaitForEnd();
  EXPECT_EQ(parked->status(), 200);
  EXPECT_EQ(left->status(), 0);
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr(R"(troupe_requests_total{endpoint="/v1/messages",status="429"} 1)"));
}

TEST_F(ReloadServiceTest, EveryAnswerOfThoseParkedHasItsPlaceInTheNextModelsQueue) {
  pooling_ = Pooling::kMean;
  Open();
  Park(/*most=*/6);
  Close();
  const char* const kOne = R"({"prompt":"a","max_tokens":60,"ignore_eos":true})";
  const std::vector<std::shared_ptr<FakeReply>> parked = {
      Start("POST", "/v1/completions", kOne),
      Start("POST", "/v1/completions", R"({"prompt":["a","b"],"max_tokens":60,"ignore_eos":true})"),
      Start("POST", "/v1/embeddings", R"({"input":["a","b","c","d"]})")};
  const auto too_many = Start("POST", "/v1/completions", R"({"prompt":"a","n":2,"max_tokens":1})");
  EXPECT_EQ(too_many->status(), 429) << too_many->body();
  const auto last = Start("POST", "/v1/completions", kOne);
  EXPECT_EQ(last->status(), 0);
  served_ = {.model = OpenTiny({.sequences = 2, .queue = 4}),
             .options = {.name = "next", .sampling = {}, .pooling = pooling_}};
  service_->Reopen(served_);
  for (const auto& reply : parked) {
    reply->WaitForEnd();
    EXPECT_EQ(reply->status(), 200) << reply->body();
  }
  last->WaitForEnd();
  EXPECT_EQ(last->status(), 200) << last->body();
}

TEST_F(ReloadServiceTest, OtherDefaultsAreAdoptedWhileTheModelStays) {
  const auto under_way = Start("POST", "/v1/completions", std::string(kSay) + R"(,"stream":true})");
  under_way->WaitFor("data: ");
  service_->Adopt({.name = "renamed", .sampling = {.temperature = 0.25}, .tokens = 3});
  const Json after =
      PostJson("/v1/chat/completions",
               R"({"messages":[{"role":"user","content":"Hello"}],"seed":1,"ignore_eos":true})");
  EXPECT_EQ(after.Find("model")->AsString(), "renamed");
  EXPECT_EQ(after.Find("usage")->Find("completion_tokens")->AsCount(), 3u);
  EXPECT_THAT(Start("GET", "/v1/models")->body(), HasSubstr(R"("id":"renamed")"));
  EXPECT_THAT(Start("GET", "/props")->body(), HasSubstr(R"("temperature":0.25)"));
  under_way->WaitForEnd();
  EXPECT_THAT(under_way->body(), HasSubstr(R"("model":"tiny")"));
}

TEST_F(ReloadServiceTest, WhoIsParkedWhenTheServerEndsIsToldSo) {
  Park();
  const auto parked = Start("POST", "/v1/completions", R"({"prompt":"a","max_tokens":1})");
  service_->RefuseAll(Error(Code::kUnavailable, "the server is ending"));
  EXPECT_EQ(parked->status(), 503);
  EXPECT_EQ(Post("/tokenize", R"({"content":"a"})")->status(), 503);
}

TEST_F(ReloadServiceTest, WhoeverWatchesIsToldOfTheNextModel) {
  const auto watcher = Start("GET", "/live");
  watcher->WaitFor("event: state");
  Park();
  Close();
  watcher->WaitFor(": the model is being loaded");
  OpenNext("next");
  watcher->WaitFor(R"(data: {"model":"next")");
  EXPECT_THAT(watcher->body(), HasSubstr("event: facts\ndata: {\"model\":\"next\""));
  service_->EndWatching();
}

TEST_F(ReloadServiceTest, ReloadsAreCountedByTheirEnd) {
  service_->CountReload(ReloadEnd::kDone);
  service_->CountReload(ReloadEnd::kDone);
  service_->CountReload(ReloadEnd::kUndone);
  const std::string page = Start("GET", "/metrics")->body();
  EXPECT_THAT(page, HasSubstr("troupe_reloads_total{result=\"done\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("troupe_reloads_total{result=\"refused\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("troupe_reloads_total{result=\"undone\"} 1\n"));
}

TEST_F(ReloadServiceTest, MemoryThatTheSystemGotBackIsCounted) {
  service_->CountReturned(3_KiB);
  service_->CountReturned(4_KiB);
  EXPECT_THAT(Start("GET", "/metrics")->body(),
              HasSubstr("troupe_heap_returned_bytes_total 7168\n"));
}

}  // namespace
}  // namespace troupe
